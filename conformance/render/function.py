"""A function written with the published Python SDK: one ConfigMap per name in the composite resource's spec."""

import argparse
import asyncio

import grpc
from crossplane.function import resource, response, runtime
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1


class Runner(grpcv1.FunctionRunnerService):
    async def RunFunction(self, req: fnv1.RunFunctionRequest, _: grpc.aio.ServicerContext) -> fnv1.RunFunctionResponse:  # noqa: N802
        rsp = response.to(req)
        names = req.observed.composite.resource["spec"]["names"]
        for number, name in enumerate(names):
            manifest = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"name": name, "number": str(number)}}
            resource.update(rsp.desired.resources[f"map-{name}"], manifest)
        resource.update(rsp.desired.composite, {"status": {"count": len(names), "ratio": 0.5}})
        response.normal(rsp, f"composed {len(names)} maps")
        return rsp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--insecure", action="store_true")
    parser.add_argument("--address", default="0.0.0.0:9443")
    options = parser.parse_args()
    asyncio.set_event_loop(asyncio.new_event_loop())
    runtime.serve(Runner(), options.address, creds=None, insecure=options.insecure)


if __name__ == "__main__":
    main()

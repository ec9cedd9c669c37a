"""What the function composes: a ConfigMap with a greeting."""

import pydantic
from crossplane.function import logging, resource, response
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1

from function.input import Input

GREETING = "greeting"  # the name of the ConfigMap in the pipeline


class FunctionRunner(grpcv1.FunctionRunnerService):
    """Answers calls."""

    def __init__(self):
        self.log = logging.get_logger()

    async def RunFunction(self, req: fnv1.RunFunctionRequest, _) -> fnv1.RunFunctionResponse:
        """Answers one call. What is wrong with the request is a fatal result, which users see."""
        self.log.debug("called", tag=req.meta.tag)
        rsp = response.to(req)
        try:
            step = Input.model_validate(resource.struct_to_dict(req.input))
        except pydantic.ValidationError as error:
            response.fatal(rsp, f"cannot read the input: {error}")
            return rsp
        name = resource.struct_to_dict(req.observed.composite.resource).get("metadata", {}).get("name", "")
        greeting = rsp.desired.resources[GREETING]
        resource.update(greeting, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"message": f"{step.message}, {name}"}})
        # A ConfigMap is ready as soon as it exists.
        greeting.ready = fnv1.READY_TRUE if GREETING in req.observed.resources else fnv1.READY_FALSE
        return rsp

"""Requests and their responses, in the protocol's JSON form."""

import unittest

from crossplane.function import logging
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import json_format

from function import fn

XR = {"resource": {"metadata": {"name": "world"}}}
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"message": "Hello, world"}}
CASES = {
    "first call": (
        {"meta": {"tag": "a"}, "input": {"message": "Hello"}, "observed": {"composite": XR}},
        {"meta": {"tag": "a", "ttl": "60s"}, "context": {}, "desired": {"resources": {"greeting": {"resource": MAP, "ready": "READY_FALSE"}}}},
    ),
    "exists": (
        {"meta": {"tag": "a"}, "input": {"message": "Hello"}, "observed": {"composite": XR, "resources": {"greeting": {"resource": MAP}}}},
        {"meta": {"tag": "a", "ttl": "60s"}, "context": {}, "desired": {"resources": {"greeting": {"resource": MAP, "ready": "READY_TRUE"}}}},
    ),
}


class RunFunction(unittest.IsolatedAsyncioTestCase):
    """Calls of the function."""

    def setUp(self):
        logging.configure(level=logging.Level.DISABLED)

    async def test_requests_and_their_responses(self):
        """Compares whole responses."""
        for name, (request, expected) in CASES.items():
            with self.subTest(name):
                answer = await fn.FunctionRunner().RunFunction(json_format.ParseDict(request, fnv1.RunFunctionRequest()), None)
                self.assertEqual(json_format.MessageToDict(answer), expected)

    async def test_an_input_without_a_message_is_fatal(self):
        """The result names the field."""
        request = json_format.ParseDict({"input": {"mesage": "Hello"}}, fnv1.RunFunctionRequest())
        answer = await fn.FunctionRunner().RunFunction(request, None)
        self.assertEqual(answer.results[0].severity, fnv1.SEVERITY_FATAL)
        self.assertIn("message", answer.results[0].message)


if __name__ == "__main__":
    unittest.main()

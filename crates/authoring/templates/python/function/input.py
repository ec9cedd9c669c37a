"""What a step of a Composition says to this function. Its schema is package/input/inputs.yaml."""

import pydantic


class Input(pydantic.BaseModel):
    """The input."""

    model_config = pydantic.ConfigDict(extra="forbid")

    apiVersion: str = ""
    kind: str = ""
    metadata: dict = {}
    message: str
    """The greeting that is put into the ConfigMap."""

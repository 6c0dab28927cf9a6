"""Published JSON Schema of a result."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any


@cache
def result_schema() -> dict[str, Any]:
    """Return the schema. Do not modify the returned value; it is cached."""
    schema: dict[str, Any] = json.loads(resources.files("app.api").joinpath("result_schema.json").read_text("utf-8"))
    return schema

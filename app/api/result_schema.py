"""The published JSON Schema of a result, kept as the file that is served."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any


@cache
def result_schema() -> dict[str, Any]:
    """The schema as JSON values; do not change what is returned."""
    schema: dict[str, Any] = json.loads(resources.files("app.api").joinpath("result_schema.json").read_text("utf-8"))
    return schema

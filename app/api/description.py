"""The OpenAPI description: FastAPI's own, with the errors as they really are."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.api.models import ProblemOut
from app.api.problems import MEDIA_TYPE

_REF = "#/components/schemas/"
_REPLACED = ("HTTPValidationError", "ValidationError")


def describe_truthfully(app: FastAPI) -> None:
    """Have ``/openapi.json`` name the problem shape for every error of every operation."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # the way FastAPI documents


def _described(app: FastAPI) -> dict[str, Any]:
    described = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    problem = {"description": "A problem", "content": {MEDIA_TYPE: {"schema": {"$ref": f"{_REF}ProblemOut"}}}}
    for operations in described["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            operation["responses"] |= {"4XX": problem, "5XX": problem}
    schemas = described.setdefault("components", {}).setdefault("schemas", {})
    for name in _REPLACED:
        schemas.pop(name, None)
    shape = ProblemOut.model_json_schema(ref_template=f"{_REF}{{model}}")
    schemas |= shape.pop("$defs", {}) | {"ProblemOut": shape}
    return described

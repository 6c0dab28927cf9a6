"""OpenAPI description: the one that FastAPI generates, plus error responses, examples and API keys."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse

from app.api.examples import ALWAYS, HEADERS, OF_ERRORS, RATE_LIMIT, example_for, example_of, references
from app.api.models import ProblemOut
from app.api.problems import MEDIA_TYPE
from app.api.request_fields import METADATA_VALUE, METADATA_VALUE_SCHEMA
from app.api.results import result_schema

_REF = "#/components/schemas/"
_REPLACED = ("HTTPValidationError", "ValidationError")
_FORM = "Body_"
_OPEN = ("/healthz", "/readyz")


def install_openapi(app: FastAPI, examples: Sequence[Callable[[], Mapping[str, Any]]]) -> None:
    """Make ``/openapi.json`` describe the error responses of all operations, and add examples.

    ``examples`` return response examples by operation, such as ``GET /v1/compare``.
    """

    lock = Lock()

    def openapi() -> dict[str, Any]:
        with lock:
            if app.openapi_schema is None:
                app.openapi_schema = _described(app, {call: each for of in examples for call, each in of().items()})
            return app.openapi_schema

    async def document(request: Request) -> Response:
        # The first call takes one to two seconds, which FastAPI's own route would spend on the event loop.
        return await asyncio.to_thread(lambda: JSONResponse(app.openapi()))

    app.openapi = openapi  # type: ignore[method-assign]  # the way FastAPI documents
    app.add_route("/openapi.json", document, include_in_schema=False)


def _described(app: FastAPI, examples: Mapping[str, Any]) -> dict[str, Any]:
    described = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    schemas = described.setdefault("components", {}).setdefault("schemas", {})
    for name in _REPLACED:
        schemas.pop(name, None)
    shape = ProblemOut.model_json_schema(ref_template=f"{_REF}{{model}}")
    schemas |= shape.pop("$defs", {}) | {"ProblemOut": shape}
    described["components"]["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "API key. Not needed if the service has no keys."}
    }
    schemas[METADATA_VALUE] = METADATA_VALUE_SCHEMA
    schemas |= _result_components()
    for name, schema in schemas.items():
        if name.startswith(_FORM):
            schema["properties"] = {field: _without_null(part) for field, part in schema["properties"].items()}
    content = {"schema": {"$ref": f"{_REF}ProblemOut"}, "example": example_of(shape, schemas, shape="ProblemOut")}
    problem = {"description": "Error", "content": {MEDIA_TYPE: content}}
    described["components"]["headers"] = HEADERS
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            _split_docstring(operation)
            _describe_texts(operation)
            operation["responses"].pop("422", None)
            operation["responses"] |= {code: problem | references(*names) for code, names in OF_ERRORS.items()}
            if path not in _OPEN:
                operation["security"] = [{"key": []}, {}]
            common = references(*ALWAYS, *(() if path in _OPEN else RATE_LIMIT))["headers"]
            for response in operation["responses"].values():
                response["headers"] = common | response.get("headers", {})
            for parameter in operation.get("parameters", ()):
                parameter["schema"] = _without_null(parameter["schema"])
            _add_examples(f"{method.upper()} {path}", operation, schemas, examples)
    return described


def _result_components() -> dict[str, Any]:
    """Return the schema of results and its definitions as components of the description."""
    text = json.dumps(result_schema()).replace('"#/$defs/', f'"{_REF}Result_')
    schema = json.loads(text)
    definitions = {f"Result_{name}": part for name, part in schema.pop("$defs").items()}
    return {"Result": {name: part for name, part in schema.items() if not name.startswith("$")}} | definitions


def _describe_texts(operation: dict[str, Any]) -> None:
    for response in operation["responses"].values():
        for media, part in response.get("content", {}).items():
            if media in ("text/plain", "text/markdown", "text/html", "application/x-ndjson"):
                response["content"][media] = {"schema": {"type": "string"}, **(part or {})}


def _split_docstring(operation: dict[str, Any]) -> None:
    """Use the first sentence of the docstring as the summary, instead of the name of the function."""
    first, *rest = re.split(r"\.(?:\s+|$)", operation.pop("description", ""), maxsplit=1)
    if first:
        operation["summary"] = " ".join(first.split())
    if any(rest):
        operation["description"] = rest[0]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without ``null``: parameters and form fields are omitted instead of being null."""
    choices = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    if len(choices) == 1:
        return {**choices[0], **rest}
    return {**rest, "anyOf": choices} if choices else schema


def _add_examples(call: str, operation: dict[str, Any], schemas: dict[str, Any], examples: Mapping[str, Any]) -> None:
    for parameter in operation.get("parameters", ()):
        parameter.setdefault("example", example_of(parameter["schema"], schemas, name=parameter["name"]))
    contents = [operation["requestBody"]["content"]] if "requestBody" in operation else []
    contents += [
        answer["content"] for code, answer in operation["responses"].items() if code.isdigit() if "content" in answer
    ]
    for content in contents:
        for media, part in content.items():
            if part is None or "example" in part or "examples" in part:
                continue
            example = examples.get(call)
            if example is None:
                example = example_for(call, media, part.get("schema", {}), schemas)
            if example is not None:
                part["example"] = example

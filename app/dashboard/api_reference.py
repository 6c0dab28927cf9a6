"""API reference page, rendered on the server from the OpenAPI description: without scripts and without a CDN."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from markupsafe import Markup, escape

from app.dashboard.html_route import HtmlRoute
from app.dashboard.viewer import ViewerDep

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

_CODE = re.compile(r"`+([^`]+)`+")
_REF = "#/components/schemas/"
_COMMON_HEADERS = ("X-Request-ID", "RateLimit-")
_MAX_DEPTH = 4
"""Deeper fields are in the JSON of the description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a request or a response. ``path`` has dots, and ``[]`` for items of lists."""

    path: str
    kind: str
    is_required: bool
    description: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A request body or a response. ``example`` is text, or None. ``headers`` lacks those of every response."""

    status: str
    description: str
    media: str
    headers: tuple[str, ...]
    fields: tuple[Field, ...]
    example: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation as the page shows it."""

    id: str
    method: str
    path: str
    summary: Markup
    description: Markup
    parameters: tuple[Field, ...]
    bodies: tuple[Content, ...]
    responses: tuple[Content, ...]


@router.get("/docs")
async def api_reference(request: Request, viewer: ViewerDep) -> Response:
    """Show all operations by tag."""
    version, groups = await asyncio.to_thread(_described, request.app)
    return await viewer.page("api_reference.html", title="HTTP API", version=version, groups=groups)


def _described(app: FastAPI) -> tuple[str, dict[str, list[Operation]]]:
    """Return the version and the operations. The first call takes one to two seconds."""
    description = app.openapi()
    return description["info"]["version"], operations_by_tag(description)


def operations_by_tag(description: Mapping[str, Any]) -> dict[str, list[Operation]]:
    """Return the operations of an OpenAPI description, by tag, in its order."""
    schemas = description["components"]["schemas"]
    groups: dict[str, list[Operation]] = {}
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            tag = operation.get("tags", ["other"])[0]
            groups.setdefault(tag, []).append(_operation(method, path, operation, schemas))
    return groups


def _operation(method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> Operation:
    parameters = tuple(
        Field(
            path=each["name"],
            kind=f"{_kind(each['schema'], schemas)}, {each['in']}",
            is_required=each.get("required", False),
            description=_text(each.get("description") or each["schema"].get("description", "")),
        )
        for each in operation.get("parameters", ())
    )
    body = {"body": operation["requestBody"]} if "requestBody" in operation else {}
    successful = {code: each for code, each in operation["responses"].items() if code.isdigit()}
    return Operation(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=_text(operation.get("summary", "")),
        description=_text(operation.get("description", "")),
        parameters=parameters,
        bodies=tuple(_contents(body, schemas)),
        responses=tuple(_contents(successful, schemas)),
    )


def _contents(parts: Mapping[str, Mapping[str, Any]], schemas: Mapping[str, Any]) -> Iterator[Content]:
    for status, part in parts.items():
        text = part.get("description", "")
        for media, content in (part.get("content") or {"": {}}).items():
            content = content or {}
            example = content.get("example")
            yield Content(
                status=status,
                description=text,
                media=media,
                headers=tuple(name for name in part.get("headers", ()) if not name.startswith(_COMMON_HEADERS)),
                fields=tuple(_fields(content.get("schema", {}), schemas)),
                example=example if example is None or isinstance(example, str) else json.dumps(example, indent=2),
            )


def _fields(schema: Mapping[str, Any], schemas: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[Field]:
    """Yield the fields of an object, its nested objects and the items of lists, to a bounded depth."""
    if depth == _MAX_DEPTH:
        return
    if "$ref" in schema:
        yield from _fields(_resolved(schema, schemas), schemas, prefix, depth)
        return
    for choice in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _fields(choice, schemas, prefix, depth)
    if schema.get("type") == "array":
        yield from _fields(schema.get("items", {}), schemas, f"{prefix}[]", depth)
    required = schema.get("required", ())
    for name, part in schema.get("properties", {}).items():
        path = f"{prefix}.{name}" if prefix else name
        described = part.get("description") or _resolved(part, schemas).get("description", "")
        yield Field(path=path, kind=_kind(part, schemas), is_required=name in required, description=_text(described))
        yield from _fields(part, schemas, path, depth + 1)


def _text(text: str) -> Markup:
    """Return a text of the description as HTML: words in backticks are code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before


def _resolved(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in schema:
        schema = schemas[str(schema["$ref"]).removeprefix(_REF)]
    return schema


def _kind(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """Return the type in words, such as ``string or null`` or ``list of object``."""
    schema = _resolved(schema, schemas)
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices and "type" not in schema:
        return " or ".join(dict.fromkeys(_kind(choice, schemas) for choice in choices))
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}), schemas)}"
    return f"{kind} ({schema['format']})" if "format" in schema else str(kind)

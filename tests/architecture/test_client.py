"""The client has a method for each operation of the API, which sends the request of the OpenAPI document."""

from __future__ import annotations

import asyncio
import inspect
import re
import tomllib
from collections.abc import Callable
from typing import Any

import generate_client
import httpx
import pytest

from app.server.application import create_app
from app.settings import load_settings
from assay_client import AsyncClient, Client
from tests.architecture.sources import ROOT

DOCUMENT = create_app(load_settings()).openapi()
OPERATIONS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
WITH_METHOD = sorted(set(OPERATIONS) - set(generate_client.LEFT_OUT) | {"verify_answer"})


def test_generated_modules_are_current():
    modules = generate_client.modules()
    stale = [name for name, text in modules.items() if (generate_client.FOLDER / name).read_text("utf-8") != text]
    assert stale == [], "the API has changed: run `make client`"


def arguments(method: Callable[..., Any], operation: dict[str, Any]) -> dict[str, Any]:
    """Return a value for each parameter of a method: texts, one of the allowed values, or bytes."""
    schemas = {re.sub(r"\W", "_", one["name"]).lower(): one["schema"] for one in operation.get("parameters", ())}
    values: dict[str, Any] = {}
    for name, parameter in inspect.signature(method).parameters.items():
        schema = schemas.get(name, {})
        if name == "body":
            values[name] = {"a": "b"}
        elif "bytes" in str(parameter.annotation):
            values[name] = b"content"
        elif name == "content_type":
            values[name] = "text/html"
        elif "Sequence[" in str(parameter.annotation):
            values[name] = ["x y", "z"]
        else:
            values[name] = schema.get("enum", ["x/y"])[0]
    return values


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
@pytest.mark.parametrize("name", WITH_METHOD)
def test_method_sends_the_request_of_its_operation(name: str, kind: str):
    verb, path, operation = OPERATIONS[name]
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"items": [], "next_cursor": None})

    transport = httpx.MockTransport(handler)
    method = getattr(Client("http://server", transport=transport), name)
    values = arguments(method, operation)
    if kind == "blocking":
        found = method(**values)
        if inspect.isgenerator(found):
            list(found)
    else:

        async def call() -> None:
            async with AsyncClient("http://server", transport=transport) as client:
                found = getattr(client, name)(**values)
                if inspect.isasyncgen(found):
                    async for _ in found:
                        pass
                else:
                    await found

        asyncio.run(call())

    [request] = seen
    texts = {key: str(value).replace("/", "%2F").replace(" ", "%20") for key, value in values.items()}
    assert (request.method, request.url.raw_path.decode().partition("?")[0]) == (verb, path.format(**texts))
    declared = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"} - {"cursor"}
    assert set(request.url.params) == declared | ({"cursor"} & set(values))
    if any(one["name"] == "Idempotency-Key" for one in operation.get("parameters", ())):
        assert request.headers["Idempotency-Key"] == values["idempotency_key"]
    content = set(operation.get("requestBody", {}).get("content", {}))
    assert (request.headers.get("Content-Type", "").partition(";")[0] in content) == bool(content)


def test_versions_of_client_and_service_are_equal():
    projects = [tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8")) for folder in ("", "client")]
    assert len({project["project"]["version"] for project in projects}) == 1

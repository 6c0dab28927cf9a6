"""Examples for the OpenAPI description, generated from the schemas so that they stay up to date.

The name of a field determines its example value. For other names, the type does.

Routes declare the response headers that only they send.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_REF = "#/components/schemas/"
EXAMPLE_ID = "01m7zskz6revg7seq0pskhvm69"
EXAMPLE_TIME = "2026-03-01T09:30:00Z"
EXAMPLE_ANSWER = "The ferry leaves at 8:40 [timetable](https://example.org/page)."
_SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_NAMED: Mapping[str, Any] = {
    "submission_id": f"sub_{EXAMPLE_ID}",
    "job_id": f"job_{EXAMPLE_ID}",
    "result_id": f"res_{EXAMPLE_ID}",
    "page_id": f"page_{EXAMPLE_ID}",
    "run_id": f"job_{EXAMPLE_ID}",
    "agent": "my-agent",
    "task_id": "karrow_visit",
    "answer": "answer_1.md",
    "answer_name": "answer_1.md",
    "answer_sha256": _SHA256,
    "sha256": _SHA256,
    "text": EXAMPLE_ANSWER,
    "run": "nightly",
    "model": "openai/gpt-6-luna",
    "metadata": {"commit": "1f3c"},
    "budget_usd": 2.5,
    "spent_usd": 0.31,
    "status": "succeeded",
    "stage": None,
    "error": None,
    "url": "https://example.org/page",
    "final_url": "https://example.org/page",
    "job_url": f"/v1/jobs/job_{EXAMPLE_ID}",
    "outcome": "ok",
    "problem": False,
    "http_status": 200,
    "kind": "web",
    "title": "A page",
    "detail": "",
    "backend": "browser",
    "media_type": "text/plain",
    "description": "Plan a visit to the tide museum at Karrow Bay, with a page for each part.",
    "version": "1",
    "next_cursor": None,
    "blobs": {"text": {"sha256": _SHA256, "size": 5120, "media_type": "text/plain"}},
    "headers": {"content-type": "text/html"},
    "versions": {"browser": "140.0"},
    "gone": False,
    "alias_of": None,
    "cursor": f"job_{EXAMPLE_ID}",
    "limit": 20,
    "Idempotency-Key": "nightly-2026-03-01",
    "Last-Event-ID": "7",
    "If-None-Match": f'"res_{EXAMPLE_ID}"',
}
_NAMED_IN: Mapping[tuple[str, str], Any] = {
    ("AnswerIn", "name"): "answer_1",
    ("AcceptedOut", "id"): f"sub_{EXAMPLE_ID}",
    ("SubmissionOut", "id"): f"sub_{EXAMPLE_ID}",
    ("JobOut", "id"): f"job_{EXAMPLE_ID}",
    ("ListedJobOut", "id"): f"job_{EXAMPLE_ID}",
    ("JobRefOut", "id"): f"job_{EXAMPLE_ID}",
    ("JobRefOut", "url"): f"/v1/jobs/job_{EXAMPLE_ID}",
    ("JobRefOut", "status"): "queued",
    ("PageOut", "id"): f"page_{EXAMPLE_ID}",
    ("TaskOut", "status"): "ready",
    ("TaskOut", "kind"): "native",
    ("TaskOut", "name"): "karrow_visit",
    ("ResultOrigin", "status"): "complete",
    ("ProblemOut", "type"): "about:blank",
    ("ProblemOut", "title"): "Unprocessable Entity",
    ("ProblemOut", "status"): 422,
    ("ProblemOut", "code"): "INVALID",
    ("ProblemOut", "detail"): "The request has invalid fields; see errors",
    ("ProblemErrorOut", "path"): "answers.0.text",
    ("ProblemErrorOut", "message"): "is empty",
}
EXAMPLE_RESULT = {
    "schema_version": 2,
    "id": f"res_{EXAMPLE_ID}",
    "agent_name": "my-agent",
    "task_id": "karrow_visit",
    "answer_name": "answer_1.md",
    "status": "complete",
    "score": {"value": 0.75, "low": 0.75, "high": 0.75},
    "score_strict": {"value": 0.75, "low": 0.75, "high": 0.75},
    "final_score": 0.75,
    "judge_model": "gpt-6-luna",
    "extract_model": "gpt-6-luna",
    "eval_breakdown": [],
    "judge": {"model": "gpt-6-luna", "reasoning_effort": "max", "temperature": None},
    "script": {"name": "karrow_visit", "version": "3", "kind": "native", "sha256": _SHA256},
    "eval_script_sha256": _SHA256,
    "model": "gpt-6-luna",
    "prompts": ["verify@7"],
    "answer_sha256": _SHA256,
    "tool_version": "0.1.0",
    "pages": [],
    "usage": {"calls": 9, "cached_calls": 2, "input_tokens": 41000, "output_tokens": 1900, "usd": 0.05},
    "timing": {"capture_s": 6.2, "judge_s": 11.4, "total_s": 17.6},
}
_BY_CALL: Mapping[str, Any] = {
    "GET /v1/results": {"items": [EXAMPLE_RESULT], "next_cursor": None},
    "GET /v1/results/{result_id}": EXAMPLE_RESULT,
    "GET /v1/pages/{page_id}/places": {"version": 1, "unit": 10000, "lines": [[0, 42, 0, 620, 140, 5100, 90]]},
    "GET /v1/schema/result.json": {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"},
    "GET /healthz": {"status": "alive", "sandbox": "on"},
    "GET /readyz": {"ready": True, "checks": [{"name": "database", "ok": True, "detail": ""}]},
}
_BY_MEDIA: Mapping[str, str] = {
    "text/event-stream": f'id: 7\nevent: status\ndata: {{"id": "job_{EXAMPLE_ID}", "status": "running"}}\n\n',
    "text/markdown": EXAMPLE_ANSWER,
    "text/plain": "The visible text of the page.",
    "application/x-ndjson": '{"human": "failed", "claim": "Gauge Heron 2 costs 410 crowns", "reviewer": "Ada"}\n',
    "text/html": "<!doctype html><title>A page</title>",
}
_BY_TYPE: Mapping[str, Any] = {"string": "text", "integer": 3, "number": 0.75, "boolean": True, "null": None}


def example_for(call: str, media: str, schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """Return an example body of media type ``media`` for ``call`` ("GET /v1/jobs"); None for binary bodies."""
    if call in _BY_CALL:
        return _BY_CALL[call]
    if call == "GET /metrics":
        return '# HELP assay_jobs Jobs by status\n# TYPE assay_jobs gauge\nassay_jobs{status="queued"} 3.0\n'
    if media in _BY_MEDIA:
        return _BY_MEDIA[media]
    return example_of(schema, schemas) if "json" in media or media == "multipart/form-data" else None


def example_of(schema: Mapping[str, Any], schemas: Mapping[str, Any], *, shape: str = "", name: str = "") -> Any:
    """Return an example for a JSON Schema. ``shape`` is the enclosing object's schema, ``name`` the field."""
    if (shape, name) in _NAMED_IN:
        return _NAMED_IN[shape, name]
    if "$ref" in schema:
        target = str(schema["$ref"]).removeprefix(_REF)
        return example_of(schemas[target], schemas, shape=target, name=name)
    if "example" in schema:
        example = schema["example"]
        # FastAPI drops the null fields of an example.
        lost = (
            [field for field in schema.get("required", ()) if field not in example] if isinstance(example, dict) else []
        )
        return {**example, **dict.fromkeys(lost)} if lost else example
    if "const" in schema:
        return schema["const"]
    if schema.get("examples"):
        return schema["examples"][0]
    if "enum" in schema:
        return _NAMED[name] if _NAMED.get(name) in schema["enum"] else schema["enum"][0]
    if "properties" in schema:
        return {
            field: example_of(part, schemas, shape=shape, name=field) for field, part in schema["properties"].items()
        }
    refers = any("$ref" in choice for choice in schema.get("anyOf", ()))
    if name in _NAMED and (not refers or _NAMED[name] is None):
        return [_NAMED[name]] if schema.get("type") == "array" and isinstance(_NAMED[name], str) else _NAMED[name]
    return _by_type(schema, schemas, shape=shape, name=name)


def _by_type(schema: Mapping[str, Any], schemas: Mapping[str, Any], *, shape: str, name: str) -> Any:
    choices = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if choices:
        return example_of(choices[0], schemas, shape=shape, name=name)
    kind = schema.get("type")
    if kind == "array":
        return [example_of(schema.get("items", {}), schemas)]
    if kind == "object":
        return {}
    if schema.get("format") == "date-time":
        return EXAMPLE_TIME
    if kind == "integer" and "maximum" in schema:
        return min(_BY_TYPE["integer"], schema["maximum"])
    return _BY_TYPE.get(str(kind))


def _header(description: str, example: str | int, *, is_required: bool = False) -> dict[str, Any]:
    kind = "integer" if isinstance(example, int) else "string"
    return {"description": description, "required": is_required, "schema": {"type": kind}, "example": example}


HEADERS: Final = {
    "X-Request-ID": _header("ID of the request, also in the log", "4f1d0c7a9be24d06", is_required=True),
    "RateLimit-Limit": _header("Requests that the keys of an owner can send at once; absent without a limit", 4000),
    "RateLimit-Remaining": _header("Requests that remain", 3999),
    "RateLimit-Reset": _header("Seconds until all requests are available again", 1),
    "Retry-After": _header("Seconds until the request can be repeated", 2),
    "WWW-Authenticate": _header("With 401: the scheme of the API key", "Bearer"),
    "Allow": _header("With 405: the methods of the path", "GET, HEAD"),
    "Location": _header("Path of what the request created", f"/v1/submissions/sub_{EXAMPLE_ID}", is_required=True),
    "ETag": _header("Version of the body, for If-None-Match", '"2c26b46b68ffc68f"', is_required=True),
    "Cache-Control": _header("How long the response can be cached", "no-store", is_required=True),
    "Content-Disposition": _header("Name for saving the body", 'attachment; filename="labels.jsonl"', is_required=True),
}
ALWAYS: Final = ("X-Request-ID",)
RATE_LIMIT: Final = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
OF_ERRORS: Final = {"4XX": ("Retry-After", "WWW-Authenticate", "Allow"), "5XX": ("Retry-After",)}


def references(*names: str) -> dict[str, Any]:
    """Return the part of an OpenAPI response that declares these headers."""
    return {"headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names}}


def sends(status: int, *names: str) -> dict[int | str, dict[str, Any]]:
    """Return the ``responses`` of a route whose response with this status has these headers."""
    return {status: references(*names)}

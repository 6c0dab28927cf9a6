"""Request building and response parsing of both clients, without I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from assay_client.errors import ApiError, ServerUnreachable, UnexpectedReply
from assay_client.values import Event

DEFAULT_URL = "http://127.0.0.1:8000"
TIMEOUT_S = 30.0
POLL_S = 0.5
_VERIFICATION_DEADLINE_S = 120.0
LIMITS = httpx.Limits(keepalive_expiry=2.0)
"""The server closes idle connections after five seconds. A request at that moment would fail."""

T = TypeVar("T")


def headers(api_key: str | None) -> dict[str, str]:
    accept = {"Accept": "application/json"}
    return accept if api_key is None else accept | {"Authorization": f"Bearer {api_key}"}


def submission(
    agent: str,
    task_id: str,
    answers: Iterable[tuple[str, str | Mapping[str, Any]]],
    *,
    model: str | None = None,
    run: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the body of ``POST /v1/submissions``; ``answers`` are (name, text or reply) pairs."""
    body: dict[str, Any] = {
        "agent": agent,
        "task_id": task_id,
        "answers": [
            {"name": name, "text" if isinstance(content, str) else "reply": content} for name, content in answers
        ],
    }
    optional = {"model": model, "run": run, "metadata": dict(metadata) if metadata else None}
    return body | {key: value for key, value in optional.items() if value is not None}


def path(template: str, *parts: str | int) -> str:
    """Return a path with escaped parts in the place of ``{}``.

    >>> path("/v1/agents/{}/history", "a/b")
    '/v1/agents/a%2Fb/history'
    """
    return template.format(*(quote(str(part), safe="") for part in parts))


def given(**values: Any) -> dict[str, Any]:
    """Return the values that are not None."""
    return {key: value for key, value in values.items() if value is not None}


def verification_timeout_s(request: Mapping[str, Any]) -> float:
    """Return the seconds to wait for a verification: longer than its deadline, after which the server answers."""
    return float(request.get("deadline_s", _VERIFICATION_DEADLINE_S)) + TIMEOUT_S


def event_headers(after: str | None) -> dict[str, str]:
    """Return the headers of a request for events; with ``after``, only for those after the event with this id."""
    return {"Accept": "text/event-stream"} | ({} if after is None else {"Last-Event-ID": after})


def checked(response: httpx.Response) -> httpx.Response:
    """Return a successful response unchanged.

    Raises:
        ApiError: The server returned an error.
        UnexpectedReply: The error is not one of the API.
    """
    if response.is_error:
        raise _problem(response)
    return response


def read_json(response: httpx.Response) -> Any:
    """Return the JSON of a successful response.

    Raises:
        ApiError: The server returned an error.
        UnexpectedReply: The response is not JSON.
    """
    try:
        return checked(response).json()
    except ValueError as exc:
        raise UnexpectedReply(
            f"{response.url} returned HTTP {response.status_code} with a body that is not JSON", body=response.text
        ) from exc


def read_object(response: httpx.Response) -> dict[str, Any]:
    """Return the JSON object of a successful response.

    Raises:
        ApiError: The server returned an error.
        UnexpectedReply: The response is not a JSON object.
    """
    body = read_json(response)
    if not isinstance(body, dict):
        raise UnexpectedReply(f"{response.url} returned JSON that is not an object", body=response.text)
    return body


def parse_as(reader: Callable[[Mapping[str, Any]], T], data: Any) -> T:
    """Return ``reader(data)``.

    Raises:
        UnexpectedReply: A field is missing or has the wrong type.
    """
    try:
        return reader(data)
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise UnexpectedReply(
            f"the response of the server has a missing or invalid field: {exc!r}", body=str(data)
        ) from exc


def page(data: Any) -> tuple[list[dict[str, Any]], str | None]:
    """Return the items of a list page and the cursor of the next page."""

    def items(body: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        return list(body["items"]), body.get("next_cursor")

    return parse_as(items, data)


@contextmanager
def transport_errors(url: str) -> Iterator[None]:
    """Convert httpx transport errors to ServerUnreachable."""
    try:
        yield
    except httpx.TransportError as exc:
        raise ServerUnreachable(url, str(exc) or type(exc).__name__) from exc


class EventReader:
    """Parser of a ``text/event-stream``. Call ``feed`` once per line, without the line end."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._name = "message"
        self._data: list[str] = []

    def feed(self, line: str) -> Event | None:
        """Return the event that this line completes, if any."""
        if not line:
            return self._end()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name == "id":
            self._id = value
        return None

    def _end(self) -> Event | None:
        name, data = self._name, self._data
        self._name, self._data = "message", []
        if not data:
            return None
        text = "\n".join(data)
        try:
            return Event(id=self._id, name=name, data=json.loads(text))
        except ValueError as exc:
            raise UnexpectedReply(f"the data of event {name!r} is not JSON", body=text) from exc


def _problem(response: httpx.Response) -> ApiError | UnexpectedReply:
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        return UnexpectedReply(
            f"{response.url} returned HTTP {response.status_code} without problem+json", body=response.text
        )
    listed = body.get("errors")
    errors = [
        (str(one.get("path", "")), str(one.get("message", "")))
        for one in (listed if isinstance(listed, list) else [])
        if isinstance(one, dict)
    ]
    return ApiError(
        status=response.status_code,
        code=str(body.get("code", "")),
        detail=str(body.get("detail") or body.get("title") or response.reason_phrase),
        errors=errors,
        retry_after_s=_parse_retry_after(response.headers.get("Retry-After")),
    )


def _parse_retry_after(value: str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None

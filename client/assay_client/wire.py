"""Request building and response parsing of both clients, without I/O."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from assay_client.errors import ApiError, InvalidArgument, ServerUnreachable, UnexpectedReply
from assay_client.values import Event

DEFAULT_URL = "http://127.0.0.1:8000"
TIMEOUT_S = 30.0
POLL_S = 0.5
_VERIFICATION_DEADLINE_S = 120.0
LIMITS = httpx.Limits(keepalive_expiry=2.0)
"""The server closes idle connections after five seconds. A request at that moment would fail."""
MAX_DEPTH = 100
MAX_BITS = 64
_SURROGATE = re.compile("[\ud800-\udfff]")
_HEADER = re.compile(r"[!-~](?:[ -~]*[!-~])?")

T = TypeVar("T")


def base_url(url: str) -> str:
    """Return the address of a server without a slash at its end.

    Raises:
        InvalidArgument: It is not an http or https address with a valid host and port.
    """
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError, ValueError) as exc:
        raise InvalidArgument("url", f"{url!r} is not a valid address: {exc}") from exc
    if parsed.port is not None and not 0 < parsed.port < 2**16:
        raise InvalidArgument("url", f"{url!r} has the port {parsed.port}: use one from 1 to 65535")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidArgument("url", f"{url!r} is not an http or https address, for example {DEFAULT_URL}")
    return url.rstrip("/")


def headers(api_key: str | None) -> dict[str, str]:
    """Return the headers of all requests.

    Raises:
        InvalidArgument: The key has characters that no header can have.
    """
    accept = {"Accept": "application/json"}
    if api_key is None:
        return accept
    _check_header("api_key", api_key)
    return accept | {"Authorization": f"Bearer {api_key}"}


def request_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a request for httpx, with the JSON body encoded.

    Raises:
        InvalidArgument: A value cannot be sent.
    """
    ready = dict(options)
    for name, value in (options.get("headers") or {}).items():
        _check_header(name, value)
    for kind in ("params", "data"):
        for name, value in (options.get(kind) or {}).items():
            for each in value if isinstance(value, list | tuple) else [value]:
                _check_scalar(name, each)
    sent_bytes = {**(options.get("files") or {}), **({"content": options["content"]} if "content" in options else {})}
    for name, value in sent_bytes.items():
        if not isinstance(value, bytes):
            raise InvalidArgument(name, f"must be bytes, not {type(value).__name__}")
    if "json" in options:
        ready["content"] = json.dumps(_plain("body", ready.pop("json"), MAX_DEPTH), ensure_ascii=False).encode()
        ready["headers"] = {**(options.get("headers") or {}), "Content-Type": "application/json"}
    return ready


def _plain(field: str, value: Any, depth: int) -> Any:
    """Return a value with only the types of JSON."""
    if isinstance(value, Mapping):
        if depth == 0:
            raise InvalidArgument(field, f"contains itself or is nested more than {MAX_DEPTH} levels deep")
        for name in value:
            if not isinstance(name, str):
                raise InvalidArgument(field, f"has the key {name!r}, which is not a string")
            _check_scalar(field, name)
        return {name: _plain(f"{field}.{name}", each, depth - 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        if depth == 0:
            raise InvalidArgument(field, f"contains itself or is nested more than {MAX_DEPTH} levels deep")
        return [_plain(f"{field}[{index}]", each, depth - 1) for index, each in enumerate(value)]
    if value is not None:
        _check_scalar(field, value)
    return value


def _check_scalar(field: str, value: Any) -> None:
    """Accept strings without lone surrogates, booleans, and numbers that JSON and query strings can have."""
    if isinstance(value, str):
        if not value.isascii() and _SURROGATE.search(value):
            raise InvalidArgument(field, "contains a lone surrogate, which is no character")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidArgument(field, f"must be a finite number, not {value}")
    elif isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            raise InvalidArgument(field, f"is a number of more than {MAX_BITS} bits")
    else:
        raise InvalidArgument(field, f"must be a string or a number, not {type(value).__name__}")


def _check_header(field: str, value: Any) -> None:
    if not isinstance(value, str) or not _HEADER.fullmatch(value):
        raise InvalidArgument(field, "must be a string of printable ASCII characters without blanks at its ends")


def submission(
    agent: str,
    task_id: str,
    answers: Iterable[tuple[str, str | Mapping[str, Any]]],
    *,
    model: str | None = None,
    run: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    evidence: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    evidence_policy: str | None = None,
) -> dict[str, Any]:
    """Return the body of ``POST /v1/submissions``; ``answers`` are (name, text or reply) pairs.

    ``evidence`` has the pages supplied with each answer, by its name.

    Raises:
        InvalidArgument: ``answers`` are not pairs, or ``metadata`` is no mapping.
    """
    try:
        pairs = [(name, content) for name, content in answers]
    except (TypeError, ValueError) as exc:
        raise InvalidArgument("answers", "must be pairs of a name and a text or reply") from exc
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidArgument("metadata", f"must be a mapping, not {type(metadata).__name__}")
    body: dict[str, Any] = {
        "agent": agent,
        "task_id": task_id,
        "answers": [
            {
                "name": name,
                "text" if isinstance(content, str) else "reply": content,
                **({"evidence": list(evidence[name])} if evidence and evidence.get(name) else {}),
            }
            for name, content in pairs
        ],
    }
    optional = {
        "model": model,
        "run": run,
        "metadata": dict(metadata) if metadata else None,
        "evidence_policy": evidence_policy,
    }
    return body | {key: value for key, value in optional.items() if value is not None}


def path(template: str, *parts: str | int) -> str:
    """Return a path with escaped parts in the place of ``{}``.

    >>> path("/v1/agents/{}/history", "a/b")
    '/v1/agents/a%2Fb/history'

    Raises:
        InvalidArgument: A part is empty, ``.`` or ``..``, or cannot be sent.
    """
    for number, part in enumerate(parts, start=1):
        field = f"part {number} of {template}"
        _check_scalar(field, part)
        if part in ("", ".", ".."):
            raise InvalidArgument(field, f"must not be {part!r}")
    return template.format(*(quote(str(part), safe="") for part in parts))


def given(**values: Any) -> dict[str, Any]:
    """Return the values that are not None."""
    return {key: value for key, value in values.items() if value is not None}


def verification_timeout_s(request: Mapping[str, Any]) -> float:
    """Return the seconds to wait for a verification: longer than its deadline, after which the server answers."""
    deadline_s = request.get("deadline_s") if isinstance(request, Mapping) else None
    if not isinstance(deadline_s, int | float) or not 0 <= deadline_s < math.inf:
        deadline_s = _VERIFICATION_DEADLINE_S  # the server refuses such a deadline
    return deadline_s + TIMEOUT_S


def event_headers(after: str | None) -> dict[str, str]:
    """Return the headers of a request for events; with ``after``, only for those after the event with this id."""
    if after is not None:
        _check_header("after", after)
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

"""Exceptions of the client.

ClientError
├── InvalidArgument     a value cannot be sent; nothing was sent
├── ServerUnreachable   no connection, connection lost, or no response in time
├── ApiError            the server returned an error (problem+json)
├── UnexpectedReply     the response is not one of an assay server of this version
└── WaitTimeout         jobs did not finish before the timeout
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class ClientError(Exception):
    """Base class of all exceptions of this package."""


class InvalidArgument(ClientError):
    """A value that cannot be sent. Nothing was sent. ``field`` names it, for example ``body.answers[0].text``."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field


class ServerUnreachable(ClientError):
    """The server at ``url`` does not respond."""

    def __init__(self, url: str, detail: str) -> None:
        super().__init__(f"no response from {url}: {detail}")
        self.url = url
        self.detail = detail


class ApiError(ClientError):
    """Error response of the server: HTTP ``status``, assay's error ``code``, and (path, message) ``errors`` of fields.

    ``retry_after_s`` is set if the response has a ``Retry-After`` header.
    """

    def __init__(
        self,
        *,
        status: int,
        code: str,
        detail: str,
        errors: Sequence[tuple[str, str]] = (),
        retry_after_s: float | None = None,
    ) -> None:
        fields = "".join(f"\n  {path}: {message}" for path, message in errors)
        super().__init__(f"{detail} ({code}, HTTP {status}){fields}")
        self.status = status
        self.code = code
        self.detail = detail
        self.errors: tuple[tuple[str, str], ...] = tuple(errors)
        self.retry_after_s = retry_after_s


class UnexpectedReply(ClientError):
    """The response does not follow the API. ``body`` contains its first 500 characters."""

    def __init__(self, message: str, *, body: str = "") -> None:
        super().__init__(message)
        self.body = body[:500]


class WaitTimeout(ClientError):
    """Jobs did not finish in time. ``pending`` maps the id of each unfinished job to its last state."""

    def __init__(self, pending: Mapping[str, str]) -> None:
        states = ", ".join(f"{job_id} {status}" for job_id, status in pending.items())
        super().__init__(f"not finished in time: {states}")
        self.pending = dict(pending)

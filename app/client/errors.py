"""What a call to a server can end in, other than its reply.

ClientError
├── ServerUnreachable   no connection, or it broke, or no reply in time
├── ApiError            the server said no, with problem+json
├── UnexpectedReply     something answered that is not an assay server of this version
└── WaitTimeout         jobs were not finished when the time given was over
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class ClientError(Exception):
    """Base of everything this package raises."""


class ServerUnreachable(ClientError):
    """Nothing answers at ``url``."""

    def __init__(self, url: str, detail: str) -> None:
        super().__init__(f"no answer from {url}: {detail}")
        self.url = url
        self.detail = detail


class ApiError(ClientError):
    """The server refused: ``status`` (HTTP), ``code`` (ours), and ``errors`` as (path, message) for bad input.

    ``retry_after_s`` is set when the server asked to come back later.
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
    """The reply is not what the API promises; ``body`` is its first part, for the reader."""

    def __init__(self, message: str, *, body: str = "") -> None:
        super().__init__(message)
        self.body = body[:500]


class WaitTimeout(ClientError):
    """``pending`` maps the id of each job that is still open to its last status."""

    def __init__(self, pending: Mapping[str, str]) -> None:
        states = ", ".join(f"{job_id} {status}" for job_id, status in pending.items())
        super().__init__(f"{len(pending)} job(s) not finished in time: {states}")
        self.pending = dict(pending)

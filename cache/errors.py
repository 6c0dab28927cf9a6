"""Errors of the capture service itself. Failures of the web are capture outcomes, not errors.

CacheError
├── BlobError            a stored body cannot be read or written
│   ├── BlobMissing      no body is stored under this hash
│   ├── BlobCorrupt      the stored bytes do not match the hash
│   └── BlobStoreFailed  the store is unreachable or failed
│       └── BlobStoreFull  no space left
├── IndexFailed          a capture record cannot be written or read
├── NoEvidence           the capture is not evidence
├── DocumentRejected     bytes that cannot be converted to a page (carries the outcome)
├── HostUnknown          the host does not exist (DNS)
├── LookupFailed         the DNS lookup failed
└── BrowserUnavailable   no usable browser
    └── SandboxUnavailable  the browser starts only without its sandbox
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cache.capture import Capture, CaptureOutcome


class CacheError(Exception):
    """Base class of the errors of this package."""


class BlobError(CacheError):
    """A stored body cannot be read or written."""

    def __init__(self, sha256: str, detail: str) -> None:
        super().__init__(f"blob {sha256[:12]}: {detail}")
        self.sha256 = sha256
        self.detail = detail


class BlobMissing(BlobError):
    """No body is stored under this hash."""


class BlobCorrupt(BlobError):
    """The stored bytes do not match the hash. The file was moved to quarantine."""


class BlobStoreFailed(BlobError):
    """The store is unreachable or failed. A retry may succeed."""


class BlobStoreFull(BlobStoreFailed):
    """No space left in the store. A retry can succeed after space was freed."""


class IndexFailed(CacheError):
    """A capture record cannot be written or read."""


class NoEvidence(CacheError):
    """The capture is not evidence. ``gone``: the source is known not to exist."""

    def __init__(self, url: str, outcome: CaptureOutcome, detail: str, *, gone: bool, capture: Capture | None) -> None:
        super().__init__(f"{url}: {outcome.value}{f' ({detail})' if detail else ''}")
        self.url = url
        self.outcome = outcome
        self.detail = detail
        self.gone = gone
        self.capture = capture


class DocumentRejected(CacheError):
    """Bytes that cannot be converted to a page, with the resulting outcome."""

    def __init__(self, outcome: CaptureOutcome, detail: str) -> None:
        super().__init__(f"{outcome.value}: {detail}")
        self.outcome = outcome
        self.detail = detail


class HostUnknown(CacheError):
    """The host does not exist (DNS)."""

    def __init__(self, host: str) -> None:
        super().__init__(f"host {host} does not exist")


class LookupFailed(CacheError):
    """The DNS lookup failed. A retry may succeed."""

    def __init__(self, host: str, detail: str) -> None:
        super().__init__(f"DNS lookup of {host} failed: {detail}")


class BrowserUnavailable(CacheError):
    """No usable browser. The message names the cause and the remedy."""


class SandboxUnavailable(BrowserUnavailable):
    """The browser starts only without its sandbox, which is not allowed."""

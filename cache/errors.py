"""What can go wrong on our side of the evidence. What the web does wrong is an outcome, not an error.

CacheError
├── BlobError            a stored body cannot be had
│   ├── BlobMissing      nothing is stored under that hash
│   ├── BlobCorrupt      what is stored no longer has that hash
│   └── BlobStoreFailed  the store itself refused or broke
│       └── BlobStoreFull  there is no room
├── IndexFailed          the record of a capture cannot be written or read
├── NoEvidence           the page was looked for and there is nothing to judge by
├── DocumentRejected     bytes that cannot be turned into a page (carries the outcome)
├── HostUnknown          the name service says there is no such host
├── LookupFailed         the name service did not say
└── BrowserUnavailable   no usable browser
    └── SandboxUnavailable  it starts, but only without its sandbox
"""

from __future__ import annotations

from cache.capture import Capture, CaptureOutcome


class CacheError(Exception):
    """Base of everything this package raises on purpose."""


class BlobError(CacheError):
    """A stored body cannot be had."""

    def __init__(self, sha256: str, detail: str) -> None:
        super().__init__(f"blob {sha256[:12]}: {detail}")
        self.sha256 = sha256
        self.detail = detail


class BlobMissing(BlobError):
    """Nothing is stored under that hash."""


class BlobCorrupt(BlobError):
    """What is stored no longer has that hash; it has been moved out of the way."""


class BlobStoreFailed(BlobError):
    """The store refused or broke; trying again later may help."""


class BlobStoreFull(BlobStoreFailed):
    """There is no room; once there is, trying again helps."""


class IndexFailed(CacheError):
    """The record of a capture cannot be written or read."""


class NoEvidence(CacheError):
    """There is nothing to judge by. ``gone`` says the source is known not to exist."""

    def __init__(self, url: str, outcome: CaptureOutcome, detail: str, *, gone: bool, capture: Capture | None) -> None:
        super().__init__(f"{url}: {outcome.value}{f' ({detail})' if detail else ''}")
        self.url = url
        self.outcome = outcome
        self.detail = detail
        self.gone = gone
        self.capture = capture


class DocumentRejected(CacheError):
    """Bytes that cannot be turned into a page, and the outcome this amounts to."""

    def __init__(self, outcome: CaptureOutcome, detail: str) -> None:
        super().__init__(f"{outcome.value}: {detail}")
        self.outcome = outcome
        self.detail = detail


class HostUnknown(CacheError):
    """The name service says there is no such host."""

    def __init__(self, host: str) -> None:
        super().__init__(f"there is no host {host}")


class LookupFailed(CacheError):
    """The name service did not say; trying again later may help."""

    def __init__(self, host: str, detail: str) -> None:
        super().__init__(f"looking up {host}: {detail}")


class BrowserUnavailable(CacheError):
    """No usable browser; the message says what is missing and the remedy."""


class SandboxUnavailable(BrowserUnavailable):
    """The browser starts only without its sandbox, which was not allowed."""

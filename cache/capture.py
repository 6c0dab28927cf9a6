"""One attempt to observe a URL, and what came of it. Values and the Capturer seam; no IO here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class CaptureOutcome(StrEnum):
    """How an attempt ended. Only ``ok`` and ``partial`` are evidence."""

    OK = "ok"
    PARTIAL = "partial"
    """The deadline came first; what was there by then is kept and labelled."""
    HTTP_ERROR = "http_error"
    BLOCKED = "blocked"
    CAPTCHA = "captcha"
    LOGIN_WALL = "login_wall"
    CONSENT_WALL = "consent_wall"
    SOFT_404 = "soft_404"
    EMPTY = "empty"
    DNS_ERROR = "dns_error"
    CONNECT_ERROR = "connect_error"
    TLS_ERROR = "tls_error"
    TIMEOUT = "timeout"
    TOO_LARGE = "too_large"
    UNSUPPORTED = "unsupported"
    """Not a page: a type we cannot show, or a scheme other than http and https."""
    EGRESS_DENIED = "egress_denied"
    REDIRECT_LOOP = "redirect_loop"
    DAMAGED = "damaged"
    """A PDF or image that cannot be decoded, is encrypted, or exhausts the limits of its child process."""
    CRASH = "crash"


EVIDENCE_OUTCOMES = frozenset({CaptureOutcome.OK, CaptureOutcome.PARTIAL})


class PageKind(StrEnum):
    """What the bytes turned out to be, never what the URL looks like."""

    WEB = "web"
    PDF = "pdf"
    TEXT = "text"
    IMAGE = "image"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a Capturer saw, with the bodies still in memory.

    ``text`` is what a person would read, ``screenshots`` are 0..n JPEG bytes top to bottom (a PDF: one a
    page), ``links`` are (visible text, absolute target) pairs, ``chain`` the URLs passed on the way,
    ``gone`` whether the source is known not to exist (404, 410, no such host).
    """

    url: str
    outcome: CaptureOutcome
    captured_at: datetime
    duration_s: float
    backend: str
    detail: str = ""
    final_url: str | None = None
    http_status: int | None = None
    kind: PageKind = PageKind.WEB
    title: str = ""
    text: str = ""
    hidden_text: str = ""
    screenshots: tuple[bytes, ...] = ()
    html: bytes | None = None
    pdf: bytes | None = None
    links: tuple[tuple[str, str], ...] = ()
    chain: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    gone: bool = False

    @property
    def is_evidence(self) -> bool:
        return self.outcome in EVIDENCE_OUTCOMES


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A stored body: where its bytes are by content, and how many."""

    sha256: str
    size: int
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """The record of one attempt, its bodies in the evidence store by hash.

    ``id`` names the attempt (``page_id`` in results), ``key`` the canonical URL. ``blobs`` maps a role
    (text, hidden_text, screenshot-0.., html, pdf, links) to what is stored.
    """

    id: str
    url: str
    key: str
    outcome: CaptureOutcome
    captured_at: datetime
    duration_s: float
    backend: str
    detail: str = ""
    final_url: str | None = None
    http_status: int | None = None
    kind: PageKind = PageKind.WEB
    title: str = ""
    chain: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    blobs: Mapping[str, Blob] = field(default_factory=dict)
    gone: bool = False

    @property
    def is_evidence(self) -> bool:
        return self.outcome in EVIDENCE_OUTCOMES


class Capturer(Protocol):
    """Observes one URL at a time; may be called side by side.

    Never raises for what the web does: every end is an Observation with an outcome. Raises only
    ``cache.errors`` for what is wrong on our side (no browser), and CancelledError.
    """

    async def capture(self, url: str) -> Observation: ...

    async def aclose(self) -> None: ...

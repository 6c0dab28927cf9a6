"""One attempt to observe a URL, and what came of it. Values and the Capturer seam; no IO here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from cache.urls import canonical_key

SCREENSHOT_ROLE = "screenshot-"
ALTERNATIVES = "[alternative texts of pictures]"
"""The line of a page's hidden text after which only what pictures are said to show follows."""


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
    """A PDF or image that cannot be decoded, is encrypted, or exhausts the limits of its child process; or bytes that
    are called a page and are no text."""
    CRASH = "crash"
    CORRUPT = "corrupt"
    """What we had stored of the page went bad, and the page cannot be had again."""


EVIDENCE_OUTCOMES = frozenset({CaptureOutcome.OK, CaptureOutcome.PARTIAL})


class PageKind(StrEnum):
    """What the bytes turned out to be, never what the URL looks like."""

    WEB = "web"
    PDF = "pdf"
    TEXT = "text"
    IMAGE = "image"


class CaptureSource(StrEnum):
    """Where the bytes came from."""

    WEB = "web"
    """The page's own server, asked by us."""
    WAYBACK = "wayback"
    """A copy in the web archive; ``provenance`` says of when."""
    UPLOAD = "upload"
    """Somebody handed it in; ``provenance`` says who and when."""
    IMPORT = "import"
    """A page cache that was brought in."""


class Suspicion(StrEnum):
    """How much speaks for a page being what its site shows in place of what it does not have; by this the answer of an
    address beside it, which nobody can have made, is weighed."""

    SAID = "said"
    """It says so itself, of the page: whatever is beside it, it is no evidence."""
    LIKELY = "likely"
    """Held for missing, unless the site says honestly of others that they are."""
    SLIGHT = "slight"
    """Held for the page, unless its site shows the same of what cannot be there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a Capturer saw, with the bodies still in memory.

    ``text`` is what a person would read, ``screenshots`` are 0..n JPEG bytes top to bottom (a PDF: one a
    page, a tall page: tiles of up to 6,000 px), ``links`` are (visible text, absolute target) pairs, ``chain``
    the URLs passed on the way, ``gone`` whether the source is known not to exist (404, 410, no such host).
    ``provenance`` says about a ``source`` other than the web what a reader must know of it, ``original`` is the
    picture that came from there where a smaller one is shown, ``places`` says where the text stands in the screenshots
    (JSON of ``cache.page_text.text_boxes``). ``suspicion``: why an address beside it is worth asking.
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
    original: bytes | None = None
    html: bytes | None = None
    pdf: bytes | None = None
    places: bytes | None = None
    links: tuple[tuple[str, str], ...] = ()
    chain: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    gone: bool = False
    source: CaptureSource = CaptureSource.WEB
    provenance: Mapping[str, str] = field(default_factory=dict)
    suspicion: Suspicion | None = None

    @property
    def is_evidence(self) -> bool:
        return self.outcome in EVIDENCE_OUTCOMES

    @property
    def hidden_words(self) -> int:
        """How many words are in the document and cannot be seen; what pictures are said to show is not counted."""
        return len(self.hidden_text.partition(ALTERNATIVES)[0].split())


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
    (text, hidden_text, screenshot-0.., places, original, html, pdf, links) to what is stored. ``alias_of`` names the
    capture of another URL that ended at this one, where that was looked at in place of asking again. ``hidden_words``
    counts what is in the document and cannot be seen.
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
    hidden_words: int = 0
    gone: bool = False
    source: CaptureSource = CaptureSource.WEB
    provenance: Mapping[str, str] = field(default_factory=dict)
    alias_of: str | None = None

    @property
    def is_evidence(self) -> bool:
        return self.outcome in EVIDENCE_OUTCOMES

    @property
    def screenshot_roles(self) -> tuple[str, ...]:
        """The roles of its pictures, top to bottom."""
        found = (role for role in self.blobs if role.startswith(SCREENSHOT_ROLE))
        return tuple(sorted(found, key=lambda role: int(role.removeprefix(SCREENSHOT_ROLE))))

    @property
    def final_key(self) -> str | None:
        """The key of the address where evidence was found, if that is not the one that was asked for.

        Only what we saw ourselves makes two addresses one page; an upload could claim any.
        """
        if not self.is_evidence or not self.final_url or self.source is not CaptureSource.WEB:
            return None
        key = canonical_key(self.final_url)
        return None if key == self.key else key


class Capturer(Protocol):
    """Observes one URL at a time; may be called side by side.

    Never raises for what the web does: every end is an Observation with an outcome. Raises only
    ``cache.errors`` for what is wrong on our side (no browser), and CancelledError.
    """

    async def capture(self, url: str) -> Observation: ...

    async def aclose(self) -> None: ...

"""Captures and observations of URLs, and the interface of capture backends. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from cache.urls import canonical_key

SCREENSHOT_PREFIX = "screenshot-"
PART_PREFIX = "part-"
ALT_TEXT_HEADING = "[alternative texts of pictures]"
"""Heading of the section with image alternative texts. It is the last section of a page's hidden text."""


class CaptureOutcome(StrEnum):
    """Outcome of a capture attempt. Only ``ok`` and ``partial`` are evidence."""

    OK = "ok"
    PARTIAL = "partial"
    """A part of the content may be missing: the deadline expired, or a consent dialog covered a page of pictures."""
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
    """Not a page: a content type without a decoder, or a scheme other than http and https."""
    EGRESS_DENIED = "egress_denied"
    REDIRECT_LOOP = "redirect_loop"
    DAMAGED = "damaged"
    """A PDF or image that cannot be decoded, is encrypted, or exceeds the limits of its child process; or binary data
    that is declared as a page; or garbled text (see ``cache.page_text.sentences``)."""
    CRASH = "crash"
    CORRUPT = "corrupt"
    """The stored bodies are damaged, and the page could not be captured again."""
    NOT_STORED = "not_stored"
    """There is no stored capture, and the run captures no pages. Never the outcome of a capture."""
    FORBIDDEN = "forbidden"
    """The page does not count as a source and is not used. Never the outcome of a capture."""


EVIDENCE_OUTCOMES = frozenset({CaptureOutcome.OK, CaptureOutcome.PARTIAL})


class PageKind(StrEnum):
    """Content type, determined from the bytes and never from the URL."""

    WEB = "web"
    PDF = "pdf"
    TEXT = "text"
    IMAGE = "image"


class CaptureSource(StrEnum):
    """Origin of the bytes of a capture."""

    WEB = "web"
    """Fetched from the page's own server."""
    WAYBACK = "wayback"
    """A copy from the web archive; ``provenance`` contains its date."""
    UPLOAD = "upload"
    """Uploaded by a person; ``provenance`` contains the uploader and the time."""
    IMPORT = "import"
    """From an imported page cache."""
    SUPPLIED = "supplied"
    """Supplied by the agent with its answer: the agent's word for what the page says. Never found by its URL."""


class EvidencePolicy(StrEnum):
    """Which copies of a page a claim may rest on, in the order of the trust that they need."""

    CAPTURED = "captured"
    """Captured pages only. Supplied ones are stored and shown."""
    FALLBACK = "fallback"
    """Supplied pages whose capture is not evidence."""
    SUPPLIED = "supplied"
    """Supplied pages. Nothing is opened; for other URLs, stored captures are used."""

    def limited_by(self, limit: EvidencePolicy | None) -> EvidencePolicy:
        """Return this policy, or ``limit`` if it trusts less."""
        order = list(EvidencePolicy)
        return self if limit is None else min(self, limit, key=order.index)


class Soft404Confidence(StrEnum):
    """Confidence that a page is a soft 404. It determines how the response of a random sibling URL is interpreted."""

    STATED = "said"
    """The page itself says that it is missing. It is not evidence, regardless of the response of the sibling URL."""
    LIKELY = "likely"
    """Treated as a soft 404 unless the sibling URL returns 404 or 410."""
    SLIGHT = "slight"
    """Treated as the cited page unless the sibling URL shows the same content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Result of one capture attempt, with the bodies in memory.

    Attributes:
        text: Visible text.
        screenshots: 0..n JPEGs, top to bottom. A PDF has one per page; a tall web page is split into tiles of at most
            6,000 px. The picture of an imported page is whole.
        original: The uploaded image, if ``screenshots`` contains a smaller version of it.
        places: Position of the text in the screenshots (JSON of ``cache.page_text.text_boxes``).
        links: Pairs of visible text and absolute target.
        chain: URLs of the redirects that were followed.
        gone: Whether the source is known not to exist (404, 410, no such host).
        provenance: Details about a ``source`` other than ``web``.
        soft_404_confidence: Set if a random sibling URL should be probed for a soft 404.
        may_be_blocked: The page is empty and shows a sign that it refuses this browser.
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
    soft_404_confidence: Soft404Confidence | None = None
    may_be_blocked: bool = False

    @property
    def is_evidence(self) -> bool:
        return self.outcome in EVIDENCE_OUTCOMES

    @property
    def hidden_words(self) -> int:
        """Number of words in the hidden text, without alternative texts of images."""
        return len(self.hidden_text.partition(ALT_TEXT_HEADING)[0].split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Reference to a stored body: hash, size in bytes and media type."""

    sha256: str
    size: int
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """Stored record of one capture attempt. Its bodies are in the blob store.

    Attributes:
        id: Identifies the attempt (``page_id`` in results).
        key: Canonical form of the URL.
        blobs: Stored body by name: text, hidden_text, screenshot-0.., part-0.., places, original, html, pdf, links.
            The parts are the screenshots as models are shown them, unless they are shown unchanged.
        alias_of: Id of the capture of another URL that this record refers to.
        hidden_words: Number of words that are in the document but not visible.
        owner: The capture is used for the answers of this owner only. None: for all answers.
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
    owner: str | None = None

    @property
    def is_evidence(self) -> bool:
        return self.outcome in EVIDENCE_OUTCOMES

    @property
    def screenshot_names(self) -> tuple[str, ...]:
        """Roles of the screenshots, top to bottom."""
        return self._numbered(SCREENSHOT_PREFIX)

    @property
    def part_names(self) -> tuple[str, ...]:
        """Roles of the parts, top to bottom; empty if the screenshots are shown unchanged or were not prepared."""
        return self._numbered(PART_PREFIX)

    def _numbered(self, prefix: str) -> tuple[str, ...]:
        names = (name for name in self.blobs if name.startswith(prefix))
        return tuple(sorted(names, key=lambda name: int(name.removeprefix(prefix))))

    @property
    def final_key(self) -> str | None:
        """Key of the final URL if it differs from the requested one and the capture is evidence, else None.

        Only captures from the web count, because an upload can claim any final URL.
        """
        if not self.is_evidence or not self.final_url or self.source is not CaptureSource.WEB:
            return None
        key = canonical_key(self.final_url)
        return None if key == self.key else key


class Renderer(Protocol):
    """Renders HTML that is already known."""

    async def render(self, url: str, html: bytes) -> Observation:
        """Render HTML as the page at ``url``. All its requests fail: nothing is loaded from the network.

        Raises:
            BrowserUnavailable: this machine has no usable browser.
        """


class Capturer(Protocol):
    """Captures URLs. Concurrent calls are allowed.

    Web errors are never raised; they are outcomes of the Observation. Raises only ``cache.errors`` for failures of
    this service (for example, no browser), and CancelledError.
    """

    async def capture(self, url: str) -> Observation: ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Text, links and screenshots of one capture.

    Attributes:
        text: Visible text of the page.
        links: Pairs of link text and target.
        screenshots: 0..n JPEGs: the captured ones, or the parts that models are shown (``in_parts``).
        digests: SHA-256 (hex) of text, links and screenshots, in this order.
        hidden_text: Only for PDFs: text that is in the file but not visible. OCR text of a scan is also in ``text``;
            exclude it if the words must be visible on the page.
    """

    capture: Capture
    text: str
    links: tuple[tuple[str, str], ...] = ()
    screenshots: tuple[bytes, ...] = ()
    digests: tuple[str, ...] = ()
    hidden_text: str = ""
    in_parts: bool = False

    @property
    def page_id(self) -> str:
        return self.capture.id

    @property
    def size(self) -> int:
        """Estimated size in bytes of memory. A character of a str takes up to 4 bytes."""
        return 4 * (len(self.text) + len(self.hidden_text)) + sum(map(len, self.screenshots))

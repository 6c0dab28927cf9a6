"""Request tracking of a page: open requests, failed scripts and style sheets, and repeated failing requests."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from cache.backends.devtools import DevTools

_TEXT_KINDS = frozenset({"Document", "Script", "Stylesheet", "XHR", "Fetch"})
_REPORTED_KINDS = {"Script": "scripts", "Stylesheet": "style sheets"}
_REPORTED_SHARE = 0.5
MAX_RETRIES_PER_HOST = 20
"""Maximum number of consecutive retries to a host. Requests that are sent before the first failure are not retries, for
example hundreds of images from a host that is down."""
MAX_RETRIES = 100
"""Maximum number of consecutive retries to all hosts of a page."""
_RUNAWAY_FACTOR = 3
_ALL_HOSTS = ""


class _OpenRequest(NamedTuple):
    kind: str
    sent_at: float
    """Monotonic time."""

    @property
    def brings_text(self) -> bool:
        return self.kind in _TEXT_KINDS


class RequestTracker:
    """Tracks the requests of one page over its DevTools session. Create it before the first navigation.

    Attributes:
        channel_opened_at: Monotonic time at which the page last opened a channel over which text may arrive at any time
            (a socket or an event stream).
        on_flood: Called once with a URL when the page repeats failing requests.
        runaway: Set when the page repeats them faster than delays can slow it down.
        text_events: Number of requests that may bring text, counted when sent and again when ended.
    """

    def __init__(self, devtools: DevTools) -> None:
        self.channel_opened_at = float("-inf")
        self.on_flood: Callable[[str], None] | None = None
        self.runaway = asyncio.Event()
        self._attempts: dict[str, dict[str, int]] = {}
        self._failed: Counter[str] = Counter()
        self._main_frame = devtools.main_frame
        self.text_events = 0
        self._open: dict[str, _OpenRequest] = {}
        self._abandoned: set[str] = set()
        self._reported: dict[str, tuple[str, str]] = {}
        self._loaded: dict[tuple[str, str], bool] = {}
        devtools.on("Page.frameNavigated", self._on_navigated)
        devtools.on("Network.requestWillBeSent", self._on_sent)
        devtools.on("Network.responseReceived", self._on_response)
        devtools.on("Network.loadingFinished", self._on_finished)
        devtools.on("Network.loadingFailed", self._on_failed)
        devtools.on("Network.webSocketCreated", self._on_socket)

    @property
    def has_open_requests(self) -> bool:
        """Whether any request is open, except abandoned ones."""
        return bool(self._open.keys() - self._abandoned)

    @property
    def has_open_text_requests(self) -> bool:
        """Whether a request that may bring text is open (not an image, font or video), except abandoned ones."""
        return any(sent.brings_text for request, sent in self._open.items() if request not in self._abandoned)

    @property
    def has_abandoned_requests(self) -> bool:
        """Whether an abandoned request is still open. It would pause the page's clock."""
        return bool(self._abandoned & self._open.keys())

    def abandon_open_requests(self, *, slow_s: float) -> None:
        """Stop waiting for the requests that are open now, except for text requests sent in the last ``slow_s``."""
        until = time.monotonic() - slow_s
        self._abandoned |= {
            request for request, sent in self._open.items() if not sent.brings_text or sent.sent_at <= until
        }

    def notes(self) -> list[str]:
        """Return notes for the reader if at least half of the scripts or style sheets failed to load."""
        texts = []
        for kind, name in _REPORTED_KINDS.items():
            loaded = [was_loaded for (of_kind, _), was_loaded in self._loaded.items() if of_kind == kind]
            missing = loaded.count(False)
            if missing and missing >= _REPORTED_SHARE * len(loaded):
                texts.append(f"{missing} of {len(loaded)} {name} could not be loaded")
        return texts

    def _on_navigated(self, event: dict[str, Any]) -> None:
        """Discard the requests of the previous document. The new one may still be loading."""
        if event["frame"]["id"] == self._main_frame:
            self._open = {request: sent for request, sent in self._open.items() if sent.kind == "Document"}
            self._reported.clear()
            self._loaded.clear()

    def _on_sent(self, event: dict[str, Any]) -> None:
        request, kind, of_main = (
            event["requestId"],
            event.get("type", "Other"),
            event.get("frameId") == self._main_frame,
        )
        if kind == "EventSource":
            self.channel_opened_at = time.monotonic()
        elif kind != "Document" or of_main:  # the end of a frame's document may be reported to another session
            self._open[request] = _OpenRequest(kind, time.monotonic())
            self.text_events += self._open[request].brings_text
        self._count_attempt(request, str(event["request"]["url"]))
        # The response to the script of a worker is reported to the session of the worker.
        of_worker = kind == "Script" and event.get("initiator", {}).get("type") == "other"
        if kind in _REPORTED_KINDS and of_main and not of_worker:
            reported = self._reported[request] = (kind, str(event["request"]["url"]))
            self._loaded.setdefault(reported, False)

    def _count_attempt(self, request: str, url: str) -> None:
        """Record how many consecutive failures precede a request, on its host and on all hosts.

        All requests that are sent before the first of them fails count as one attempt.
        """
        host = urlsplit(url).netloc.lower()
        attempts = {each: self._failed[each] + 1 for each in (host, _ALL_HOSTS)}
        self._attempts[request] = attempts
        excess = max(attempts[host] / MAX_RETRIES_PER_HOST, attempts[_ALL_HOSTS] / MAX_RETRIES)
        if excess > 1 and self.on_flood is not None:
            self.on_flood(url)
            self.on_flood = None
        if excess > _RUNAWAY_FACTOR:
            self.runaway.set()

    def _count_failure(self, request: str) -> None:
        for each, attempt in self._attempts.pop(request, {}).items():
            self._failed[each] = max(self._failed[each], attempt)

    def _on_response(self, event: dict[str, Any]) -> None:
        if int(event["response"]["status"]) >= 400:
            self._count_failure(event["requestId"])
        reported = self._reported.get(event["requestId"])
        if reported is not None and int(event["response"]["status"]) < 400:
            self._loaded[reported] = True

    def _on_finished(self, event: dict[str, Any]) -> None:
        self._close(event["requestId"])
        self._attempts.pop(event["requestId"], None)

    def _on_failed(self, event: dict[str, Any]) -> None:
        self._close(event["requestId"])
        self._count_failure(event["requestId"])
        reported = self._reported.get(event["requestId"])
        if reported is not None and event.get("canceled") and not event.get("blockedReason"):
            self._loaded.pop(reported, None)

    def _close(self, request: str) -> None:
        sent = self._open.pop(request, None)
        self.text_events += sent is not None and sent.brings_text

    def _on_socket(self, event: dict[str, Any]) -> None:
        self.channel_opened_at = time.monotonic()

"""The requests of a page: which are open, and how many scripts and style sheets could not be loaded."""

from __future__ import annotations

import time
from typing import Any

from cache.backends.devtools import DevTools

_BRING_TEXT = frozenset({"Document", "Script", "Stylesheet", "XHR", "Fetch"})
_NOTED = {"Script": "scripts", "Stylesheet": "style sheets"}
_MANY = 0.5


class Requests:
    """Follows the requests of one page over its DevTools session, from before the first navigation.

    Attributes:
        listening_since: When the page last opened a channel over which text may come at any time (a socket or an
            event stream), on the monotonic clock.
    """

    def __init__(self, devtools: DevTools, *, main_frame: str) -> None:
        self.listening_since = float("-inf")
        self._main_frame = main_frame
        self._open: dict[str, str] = {}
        self._given_up: set[str] = set()
        self._noted: dict[str, tuple[str, str]] = {}
        self._loaded: dict[tuple[str, str], bool] = {}
        devtools.on("Page.frameNavigated", self._on_shown)
        devtools.on("Network.requestWillBeSent", self._on_sent)
        devtools.on("Network.responseReceived", self._on_response)
        devtools.on("Network.loadingFinished", self._on_finished)
        devtools.on("Network.loadingFailed", self._on_failed)
        devtools.on("Network.webSocketCreated", self._on_socket)

    @property
    def any_open(self) -> bool:
        """Whether a request is open that was not given up."""
        return bool(self._open.keys() - self._given_up)

    @property
    def text_open(self) -> bool:
        """Whether a request is open that may bring text: no picture, no font, no film."""
        return any(kind in _BRING_TEXT for request, kind in self._open.items() if request not in self._given_up)

    @property
    def given_up(self) -> bool:
        """Whether a request that was given up is still open: it would stop the page's clock."""
        return bool(self._given_up & self._open.keys())

    def give_up(self) -> None:
        """Do not wait any longer for the requests that are open now."""
        self._given_up |= self._open.keys()

    def notes(self) -> list[str]:
        """What a reader must know: that half or more of the scripts or style sheets could not be loaded."""
        found = []
        for kind, name in _NOTED.items():
            loaded = [was_loaded for (of_kind, _), was_loaded in self._loaded.items() if of_kind == kind]
            missing = loaded.count(False)
            if missing and missing >= _MANY * len(loaded):
                found.append(f"{missing} of {len(loaded)} {name} could not be loaded")
        return found

    def _on_shown(self, event: dict[str, Any]) -> None:
        """Forget what the document before asked for. The new one may still be arriving."""
        if event["frame"]["id"] == self._main_frame:
            self._open = {request: kind for request, kind in self._open.items() if kind == "Document"}
            self._noted.clear()
            self._loaded.clear()

    def _on_sent(self, event: dict[str, Any]) -> None:
        request, kind, of_main = (
            event["requestId"],
            event.get("type", "Other"),
            event.get("frameId") == self._main_frame,
        )
        if kind == "EventSource":
            self.listening_since = time.monotonic()
        elif kind != "Document" or of_main:  # the end of a frame's document may be told to another session
            self._open[request] = kind
        if kind in _NOTED and of_main:
            noted = self._noted[request] = (kind, str(event["request"]["url"]))
            self._loaded.setdefault(noted, False)

    def _on_response(self, event: dict[str, Any]) -> None:
        noted = self._noted.get(event["requestId"])
        if noted is not None and int(event["response"]["status"]) < 400:
            self._loaded[noted] = True

    def _on_finished(self, event: dict[str, Any]) -> None:
        self._open.pop(event["requestId"], None)

    def _on_failed(self, event: dict[str, Any]) -> None:
        self._open.pop(event["requestId"], None)
        noted = self._noted.get(event["requestId"])
        if noted is not None and event.get("canceled") and not event.get("blockedReason"):
            self._loaded.pop(noted, None)

    def _on_socket(self, event: dict[str, Any]) -> None:
        self.listening_since = time.monotonic()

"""Navigation of a page's main document: redirects, responses, downloads, and later navigations by the page itself.

Documents that are not web pages are taken as bytes from the same request. After ``block_navigation``, nothing
can replace the page.

The requests of a page are tracked: open ones, failed scripts and style sheets, and repeated failing requests.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from cache.backends.devtools import DevTools, PageLost
from cache.backends.documents import MAX_PAGE_BYTES, ByteKind, byte_limit, is_html_type, sniff
from cache.backends.failures import MAX_REDIRECTS, REDIRECTS, STORED_HEADERS, CaptureFailure, failure_from_target
from cache.capture import CaptureOutcome
from cache.urls import unfetchable_reason

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


_PIECE_BYTES = 512 * 1024
_BLOCKED_REQUEST_S = 0.5
# The browser renders these: HTML, and types that it lays out as a page.
_RENDERED_TYPES = frozenset({"image/svg+xml"})
_BODY_HEADERS = frozenset(
    {"content-type", "content-length", "content-encoding", "content-disposition", "transfer-encoding"}
)
_ALL_REQUESTS = [{"urlPattern": "*", "requestStage": "Request"}]
_DOCUMENT_REQUESTS = [{"resourceType": "Document", "requestStage": stage} for stage in ("Request", "Response")]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentResponse:
    """Last response to the request of the main document. ``body`` is set if it was taken as bytes."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes | None = None

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def stored_headers(self) -> dict[str, str]:
        return {name: value for name, value in self.headers.items() if name in STORED_HEADERS}


@dataclass
class Navigation:
    """State of the main frame. Create it with ``attach`` before the first navigation.

    Until ``block_navigation``, the page may navigate by itself. After ``block_navigation``, it stays as it is.

    Attributes:
        take_all_bodies: Take every response as bytes, even if it is declared as HTML.
        content: HTML that is rendered in the place of a response. No request of the page is sent.
        body_taken: Set when a response was taken as bytes.
        navigated_again: Set when the page navigates by itself before ``block_navigation``.
        document_ready: Set when the requested document is shown or taken, or when it failed (see ``load_error``).
        load_error: Why the requested document failed, or empty.
        blocked_url: URL that the page tried to navigate to after ``block_navigation``.
        target: Last requested URL, even if the browser itself refuses it.
        loading_stopped: Set when no more content of the shown document will arrive.
        incomplete_reason: Why the document is incomplete, or empty.
    """

    devtools: DevTools
    requests: RequestTracker
    take_all_bodies: bool = False
    content: bytes | None = None
    chain: list[str] = field(default_factory=list)
    response: DocumentResponse | None = None
    failure: CaptureFailure | None = None
    blocked_url: str = ""
    target: str = ""
    load_error: str = ""
    incomplete_reason: str = ""
    body_taken: asyncio.Event = field(default_factory=asyncio.Event)
    navigated_again: asyncio.Event = field(default_factory=asyncio.Event)
    document_ready: asyncio.Event = field(default_factory=asyncio.Event)
    loading_stopped: asyncio.Event = field(default_factory=asyncio.Event)
    _is_navigation_blocked: bool = False
    _are_requests_blocked: bool = False
    _request: str = ""
    _answered_request: str = ""
    _bytes: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @classmethod
    async def attach(cls, devtools: DevTools, content: bytes | None = None) -> Navigation:
        navigation = cls(devtools, RequestTracker(devtools), content=content)
        devtools.on("Fetch.requestPaused", navigation._on_paused)
        devtools.on("Page.frameNavigated", navigation._on_navigated)
        devtools.on("Network.dataReceived", navigation._on_data)
        devtools.on("Network.loadingFailed", navigation._on_failed)
        # At once, because each wait for a response costs processor time in four processes.
        await asyncio.gather(
            devtools.send("Page.enable"),
            devtools.send("Performance.enable"),  # cannot be enabled while a script runs
            devtools.send("Network.enable", {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0}),
            devtools.send("Fetch.enable", {"patterns": _DOCUMENT_REQUESTS if content is None else _ALL_REQUESTS}),
        )
        return navigation

    @property
    def has_failed(self) -> bool:
        """Whether the page shows an error of the server or the browser, or was rejected."""
        return (
            bool(self.load_error)
            or self.failure is not None
            or (self.response is not None and self.response.status >= 400)
        )

    def block_navigation(self) -> None:
        """Prevent all further navigation of the main document."""
        self._is_navigation_blocked = True

    async def block_requests(self) -> None:
        """Let all further requests fail slowly, so that a script that repeats them hardly runs.

        They must fail at some time: a synchronous request keeps the page from noticing that its script was stopped.
        """
        self._are_requests_blocked = True
        await self.devtools.send("Fetch.enable", {"patterns": _ALL_REQUESTS})

    def reset_for_bytes(self) -> None:
        """Reset for the next navigation, and take its response as bytes."""
        self.take_all_bodies, self._is_navigation_blocked = True, False
        self.chain.clear()
        self.response = self.failure = None
        self.load_error = ""

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _on_navigated(self, event: dict[str, Any]) -> None:
        if event["frame"]["id"] == self.devtools.main_frame:
            self.document_ready.set()

    def _on_paused(self, event: dict[str, Any]) -> None:
        self._spawn(self._abort_later(event) if self._are_requests_blocked else self._handle_paused(event))

    def _on_data(self, event: dict[str, Any]) -> None:
        """Count decompressed bytes. Stop loading if the main document exceeds its size limit."""
        if event["requestId"] != self._request or self.failure is not None:
            return
        self._bytes += int(event["dataLength"])
        if self._bytes > MAX_PAGE_BYTES:
            detail = f"more than {MAX_PAGE_BYTES} bytes of content"
            self.failure = CaptureFailure(outcome=CaptureOutcome.TOO_LARGE, detail=detail)
            self.document_ready.set()
            self.loading_stopped.set()
            self._spawn(self._stop_loading())

    def _on_failed(self, event: dict[str, Any]) -> None:
        is_aborted = event.get("canceled") or event.get("errorText") == "net::ERR_ABORTED"
        if event["requestId"] == self._answered_request and not is_aborted:
            self._mark_incomplete(str(event["errorText"]))
        elif event["requestId"] == self._request and not is_aborted:
            self.load_error = str(event["errorText"])  # more precise than the error of the paused request

    def _mark_incomplete(self, reason: str) -> None:
        self.incomplete_reason = f"the connection broke off: {reason}"
        self.loading_stopped.set()

    async def _stop_loading(self) -> None:
        with suppress(PageLost):
            await self.devtools.send("Page.stopLoading")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _handle_paused(self, event: dict[str, Any]) -> None:
        try:
            if self.content is not None:
                await self._on_request_of_content(event, self.content)
            elif event["frameId"] != self.devtools.main_frame:
                await self._on_frame_request(event)
            elif "responseStatusCode" in event:
                await self._on_response(event)
            elif "responseErrorReason" in event and event.get("networkId") == self._answered_request:
                self._mark_incomplete(str(event["responseErrorReason"]))
                await self._continue(event)
            elif "responseErrorReason" in event:
                self.load_error = self.load_error or str(event["responseErrorReason"])
                self.document_ready.set()
                await self._continue(event)
            else:
                await self._on_request(event)
        except PageLost:
            return  # the page was closed during the decision

    async def _on_request(self, event: dict[str, Any]) -> None:
        url = str(event["request"]["url"])
        is_new_navigation = self.response is not None and not event.get("redirectedRequestId")
        if self._is_navigation_blocked:
            self.blocked_url = url
            await self._abort(event)
            return
        self.chain.append(url)
        self.target = url
        self.failure = self.failure or failure_from_target(url)
        if self.failure is None and len(self.chain) > MAX_REDIRECTS + 1:
            self.failure = CaptureFailure(
                outcome=CaptureOutcome.REDIRECT_LOOP, detail=f"more than {MAX_REDIRECTS} redirects"
            )
        if self.failure is not None:
            await self._abort(event)
            return
        self._request, self._bytes, self.incomplete_reason = str(event.get("networkId", "")), 0, ""
        if is_new_navigation:
            self.loading_stopped.clear()
            self.document_ready.clear()
            self.navigated_again.set()
        await self._continue(event)

    async def _on_request_of_content(self, event: dict[str, Any], content: bytes) -> None:
        """Answer the first request with the content, and let all others fail."""
        if self.response is not None or event["frameId"] != self.devtools.main_frame:
            await self._abort(event)
            return
        url = self.target = str(event["request"]["url"])
        self.chain.append(url)
        self.response = DocumentResponse(url=url, status=200, headers={"content-type": "text/html; charset=utf-8"})
        self._request = self._answered_request = str(event.get("networkId", ""))
        self.block_navigation()
        await self._render_as_html(event, self.response, content)

    async def _on_response(self, event: dict[str, Any]) -> None:
        headers = {str(entry["name"]).lower(): str(entry["value"]) for entry in event.get("responseHeaders", ())}
        status = int(event["responseStatusCode"])
        response = DocumentResponse(url=str(event["request"]["url"]), status=status, headers=headers)
        if status in REDIRECTS and headers.get("location"):
            self._record_target(response.url, headers["location"])
            await self._continue(event)
            return
        previous, self.response = self.response, response
        self._answered_request = str(event.get("networkId", ""))
        if status < 400 and status != 204 and self._must_take_body(response):
            body = await self._read_body(event, response)
            if body is not None and not self.take_all_bodies and sniff(body, response.content_type) is ByteKind.HTML:
                await self._render_as_html(event, response, body)
                return
            if previous is not None and body is not None and sniff(body, response.content_type) is ByteKind.OTHER:
                await self._keep_previous_page(event, previous)
                return
            self.response = replace(response, body=body)
            await self._abort(event)
            self.body_taken.set()
            self.document_ready.set()
            return
        await self._continue(event)

    def _record_target(self, url: str, location: str) -> None:
        with suppress(ValueError):  # the browser reports an invalid URL itself
            self.target = urljoin(url, location.strip())

    async def _keep_previous_page(self, event: dict[str, Any], previous: DocumentResponse) -> None:
        """Keep the page if it starts a download of an unreadable type by itself, as browsers do."""
        self.response, self.blocked_url = previous, self.chain.pop()
        self.block_navigation()
        await self._abort(event)
        self.document_ready.set()

    def _must_take_body(self, response: DocumentResponse) -> bool:
        media_type = response.content_type.partition(";")[0].strip().lower()
        is_rendered = is_html_type(media_type) or media_type in _RENDERED_TYPES
        return self.take_all_bodies or _is_attachment(response) or not is_rendered

    async def _read_body(self, event: dict[str, Any], response: DocumentResponse) -> bytes | None:
        """Return the body, or None if it is too large or incomplete (``failure`` contains the reason)."""
        opened = await self.devtools.send("Fetch.takeResponseBodyAsStream", {"requestId": event["requestId"]})
        body = bytearray()
        while True:
            piece = await self.devtools.send("IO.read", {"handle": opened["stream"], "size": _PIECE_BYTES})
            data = piece["data"]
            body += base64.b64decode(data) if piece.get("base64Encoded") else data.encode()
            limit = byte_limit(bytes(body[:1024]), response.content_type)
            if len(body) > limit:
                self.failure = CaptureFailure(
                    outcome=CaptureOutcome.TOO_LARGE, detail=f"more than {limit} bytes of content"
                )
                return None
            if piece["eof"]:
                return self._complete_body(bytes(body), response)

    def _complete_body(self, body: bytes, response: DocumentResponse) -> bytes | None:
        """Return the body, or None if it is shorter than announced. The stream does not report a lost connection."""
        content_length = response.headers.get("content-length", "")
        if (
            not response.headers.get("content-encoding")
            and content_length.isdigit()
            and len(body) < int(content_length)
        ):
            detail = f"the connection broke off after {len(body)} of {content_length} bytes"
            self.failure = CaptureFailure(outcome=CaptureOutcome.CONNECT_ERROR, detail=detail)
            return None
        return body

    async def _render_as_html(self, event: dict[str, Any], response: DocumentResponse, body: bytes) -> None:
        """Render HTML that was declared as another type, from the received bytes."""
        headers = [(name, value) for name, value in response.headers.items() if name not in _BODY_HEADERS]
        charset = response.content_type.partition(";")[2]
        content_type = ("content-type", f"text/html;{charset}" if charset else "text/html")
        await self.devtools.send(
            "Fetch.fulfillRequest",
            {
                "requestId": event["requestId"],
                "responseCode": response.status,
                "responseHeaders": [{"name": name, "value": value} for name, value in (*headers, content_type)],
                "body": base64.b64encode(body).decode("ascii"),
            },
        )

    async def _on_frame_request(self, event: dict[str, Any]) -> None:
        """Handle an inner frame: block schemes other than http and https. The egress proxy checks the rest."""
        if "responseStatusCode" not in event and unfetchable_reason(str(event["request"]["url"])) is not None:
            await self._abort(event)
        else:
            await self._continue(event)

    async def _continue(self, event: dict[str, Any]) -> None:
        await self.devtools.send("Fetch.continueRequest", {"requestId": event["requestId"]})

    async def _abort(self, event: dict[str, Any]) -> None:
        await self.devtools.send("Fetch.failRequest", {"requestId": event["requestId"], "errorReason": "Aborted"})

    async def _abort_later(self, event: dict[str, Any]) -> None:
        await asyncio.sleep(_BLOCKED_REQUEST_S)
        with suppress(PageLost):
            await self._abort(event)


def _is_attachment(response: DocumentResponse) -> bool:
    return response.headers.get("content-disposition", "").strip().lower().startswith("attachment")

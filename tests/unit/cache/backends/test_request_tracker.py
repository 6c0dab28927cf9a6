"""State of a page's requests, derived from the events of its DevTools session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cache.backends.navigation import MAX_RETRIES_PER_HOST, RequestTracker


class Session:
    """DevTools session whose events the test sends."""

    main_frame = "main"

    def __init__(self) -> None:
        self._listeners: dict[str, Callable[[dict[str, Any]], None]] = {}

    async def send(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        return {}

    def on(self, event: str, listener: Callable[[dict[str, Any]], None]) -> None:
        self._listeners[event] = listener

    async def run(self, script: str, argument: object = None) -> Any:
        return None

    def request(
        self, request: str, kind: str, *, frame: str = "main", host: str = "a.example", initiator: str = "parser"
    ) -> None:
        event = {
            "requestId": request,
            "type": kind,
            "frameId": frame,
            "request": {"url": f"https://{host}/{request}"},
            "initiator": {"type": initiator},
        }
        self._listeners["Network.requestWillBeSent"](event)

    def navigate(self, frame: str) -> None:
        self._listeners["Page.frameNavigated"]({"frame": {"id": frame}})

    def respond(self, request: str, status: int) -> None:
        self._listeners["Network.responseReceived"]({"requestId": request, "response": {"status": status}})
        self._listeners["Network.loadingFinished"]({"requestId": request})

    def fail(self, request: str, **details: Any) -> None:
        self._listeners["Network.loadingFailed"]({"requestId": request, **details})


def _tracked_session() -> tuple[Session, RequestTracker]:
    session = Session()
    return session, RequestTracker(session)


def test_requests_of_the_previous_document_do_not_count() -> None:
    session, requests = _tracked_session()
    session.request("old", "Script")
    session.request("next", "Document")
    assert requests.notes() == ["1 of 1 scripts could not be loaded"]
    session.navigate("advertisement")
    assert requests.notes() != []
    session.navigate("main")
    assert (requests.notes(), requests.has_open_requests) == ([], True)
    session.respond("next", 200)
    assert not requests.has_open_requests


def test_image_request_is_open_without_text_and_abandoned_requests_are_closed() -> None:
    session, requests = _tracked_session()
    session.request("p", "Image")
    assert (requests.has_open_requests, requests.has_open_text_requests) == (True, False)
    session.request("f", "Fetch")
    assert requests.has_open_text_requests
    requests.abandon_open_requests(slow_s=3)
    assert requests.has_open_text_requests  # it was sent recently
    requests.abandon_open_requests(slow_s=0)
    assert (requests.has_open_requests, requests.has_open_text_requests, requests.has_abandoned_requests) == (
        False,
        False,
        True,
    )
    session.fail("p")
    session.respond("f", 200)
    assert not requests.has_abandoned_requests


def _flooded() -> tuple[Session, RequestTracker, list[str]]:
    session, requests = _tracked_session()
    floods: list[str] = []
    requests.on_flood = floods.append
    return session, requests, floods


def test_requests_that_each_follow_a_failure_are_a_flood_reported_once() -> None:
    session, requests, floods = _flooded()
    for number in range(MAX_RETRIES_PER_HOST):
        session.request(f"{number}", "Fetch")
        session.fail(f"{number}", errorText="net::ERR_UNSAFE_PORT")
    assert floods == []
    for number in range(20, 3 * MAX_RETRIES_PER_HOST):
        session.request(f"{number}", "Fetch")
        session.respond(f"{number}", 404)
    assert floods == ["https://a.example/20"]
    assert not requests.runaway.is_set()
    session.request("last", "Fetch")
    assert requests.runaway.is_set()

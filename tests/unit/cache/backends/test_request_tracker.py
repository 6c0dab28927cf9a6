"""What is known of a page's requests from the events of its DevTools session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cache.backends.request_tracker import MAX_RETRIES, MAX_RETRIES_PER_HOST, RequestTracker


class Session:
    """A DevTools session whose events the test sends."""

    def __init__(self) -> None:
        self._listeners: dict[str, Callable[[dict[str, Any]], None]] = {}

    async def send(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        return {}

    def on(self, event: str, listener: Callable[[dict[str, Any]], None]) -> None:
        self._listeners[event] = listener

    async def run(self, script: str, argument: object = None) -> Any:
        return None

    def asks(self, request: str, kind: str, *, frame: str = "main", host: str = "a.example") -> None:
        event = {
            "requestId": request,
            "type": kind,
            "frameId": frame,
            "request": {"url": f"https://{host}/{request}"},
        }
        self._listeners["Network.requestWillBeSent"](event)

    def shows(self, frame: str) -> None:
        self._listeners["Page.frameNavigated"]({"frame": {"id": frame}})

    def answers(self, request: str, status: int) -> None:
        self._listeners["Network.responseReceived"]({"requestId": request, "response": {"status": status}})
        self._listeners["Network.loadingFinished"]({"requestId": request})

    def fails(self, request: str, **said: Any) -> None:
        self._listeners["Network.loadingFailed"]({"requestId": request, **said})


def _watched() -> tuple[Session, RequestTracker]:
    session = Session()
    return session, RequestTracker(session, main_frame="main")


def test_half_of_the_scripts_or_style_sheets_missing_is_noted_and_fewer_are_not() -> None:
    session, requests = _watched()
    for number, status in enumerate((200, 200, 404)):
        session.asks(f"s{number}", "Script")
        session.answers(f"s{number}", status)
    assert requests.notes() == []
    session.asks("s3", "Script")
    session.fails("s3", errorText="net::ERR_TUNNEL_CONNECTION_FAILED")
    session.asks("c", "Stylesheet")
    session.fails("c", errorText="net::ERR_NAME_NOT_RESOLVED")
    assert requests.notes() == ["2 of 4 scripts could not be loaded", "1 of 1 style sheets could not be loaded"]


def test_what_the_page_called_off_and_what_a_frame_asked_for_is_not_missing() -> None:
    session, requests = _watched()
    session.asks("a", "Script")
    session.fails("a", canceled=True)
    session.asks("b", "Script", frame="advertisement")
    session.fails("b")
    assert requests.notes() == []


def test_the_requests_of_the_document_before_do_not_count() -> None:
    session, requests = _watched()
    session.asks("old", "Script")
    session.asks("next", "Document")
    assert requests.notes() == ["1 of 1 scripts could not be loaded"]
    session.shows("advertisement")
    assert requests.notes() != []
    session.shows("main")
    assert (requests.notes(), requests.any_open) == ([], True)
    session.answers("next", 200)
    assert not requests.any_open


def test_a_picture_is_open_but_brings_no_text_and_what_was_given_up_is_not_waited_for() -> None:
    session, requests = _watched()
    session.asks("p", "Image")
    assert (requests.any_open, requests.text_open) == (True, False)
    session.asks("f", "Fetch")
    assert requests.text_open
    requests.give_up()
    assert (requests.any_open, requests.text_open, requests.given_up) == (False, False, True)
    session.fails("p")
    session.answers("f", 200)
    assert not requests.given_up


def _flooded() -> tuple[Session, RequestTracker, list[str]]:
    session, requests = _watched()
    told: list[str] = []
    requests.on_flood = told.append
    return session, requests, told


def test_requests_that_each_follow_a_failure_are_a_flood_and_are_told_once() -> None:
    session, requests, told = _flooded()
    for number in range(MAX_RETRIES_PER_HOST):
        session.asks(f"{number}", "Fetch")
        session.fails(f"{number}", errorText="net::ERR_UNSAFE_PORT")
    assert told == []
    for number in range(20, 3 * MAX_RETRIES_PER_HOST):
        session.asks(f"{number}", "Fetch")
        session.answers(f"{number}", 404)
    assert told == ["https://a.example/20"]
    assert not requests.runaway.is_set()
    session.asks("last", "Fetch")
    assert requests.runaway.is_set()


def test_many_requests_at_once_to_a_host_that_is_down_are_no_flood() -> None:
    session, _, told = _flooded()
    for number in range(1000):
        session.asks(f"{number}", "Image")
    for number in range(1000):
        session.fails(f"{number}", errorText="net::ERR_TUNNEL_CONNECTION_FAILED")
    session.asks("again", "Image")
    assert told == []


def test_requests_that_succeed_are_no_flood() -> None:
    session, _, told = _flooded()
    for number in range(1000):
        session.asks(f"{number}", "Fetch")
        session.answers(f"{number}", 200)
    assert told == []


def test_a_loop_over_many_hosts_is_a_flood_too() -> None:
    session, _, told = _flooded()
    for number in range(MAX_RETRIES + 1):
        session.asks(f"{number}", "Fetch", host=f"h{number}.example")
        session.fails(f"{number}")
    assert told == [f"https://h{MAX_RETRIES}.example/{MAX_RETRIES}"]

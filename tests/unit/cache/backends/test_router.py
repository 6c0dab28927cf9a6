"""Choice of the capture backend, retries and limits per host."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cache.backends.router import RoutedCapturer
from cache.capture import CaptureOutcome, Observation
from tests.unit.cache.scripted import NOON

URL = "https://a.com/x"


class ScriptedBackend:
    """Capture backend that returns the given observations in order and repeats the last one."""

    def __init__(self, *answers: Observation) -> None:
        self._answers = list(answers)
        self.asked = 0
        self.at_once = 0
        self.most_at_once = 0
        self.closed = False

    async def capture(self, url: str) -> Observation:
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    async def aclose(self) -> None:
        self.closed = True


class RecordedSleep:
    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


def _observation(outcome: CaptureOutcome, status: int | None = 200, backend: str = "first") -> Observation:
    return Observation(url=URL, outcome=outcome, captured_at=NOON, duration_s=0.1, backend=backend, http_status=status)


OK = _observation(CaptureOutcome.OK)


@pytest.mark.parametrize(
    "first",
    [
        _observation(CaptureOutcome.BLOCKED),
        replace(_observation(CaptureOutcome.EMPTY), may_be_blocked=True),
    ],
)
async def test_page_with_a_sign_of_blocking_is_captured_again_with_the_full_browser(first: Observation) -> None:
    second = ScriptedBackend(_observation(CaptureOutcome.OK, backend="second"))
    assert (await RoutedCapturer(ScriptedBackend(first), second).capture(URL)).backend == "second"


@pytest.mark.parametrize("outcome", [CaptureOutcome.OK, CaptureOutcome.SOFT_404, CaptureOutcome.TIMEOUT])
async def test_page_without_a_sign_of_blocking_gets_no_second_look(outcome: CaptureOutcome) -> None:
    first, second = ScriptedBackend(_observation(outcome)), ScriptedBackend(OK)
    assert (await RoutedCapturer(first, second, sleep=RecordedSleep()).capture(URL)).outcome is outcome
    assert second.asked == 0


@pytest.mark.parametrize(
    ("trouble", "slept"),
    [
        (_observation(CaptureOutcome.CONNECT_ERROR, None), [2.0]),
        (_observation(CaptureOutcome.HTTP_ERROR, 503), [2.0]),
        (replace(_observation(CaptureOutcome.BLOCKED, 429), headers={"retry-after": "7"}), [7.0]),
    ],
)
async def test_temporary_failure_is_retried_once(trouble: Observation, slept: list[float]) -> None:
    first, sleeping = ScriptedBackend(trouble, OK), RecordedSleep()
    assert (await RoutedCapturer(first, sleep=sleeping).capture(URL)).is_evidence
    assert (first.asked, sleeping.slept) == (2, slept)


@pytest.mark.parametrize(
    "trouble",
    [
        replace(_observation(CaptureOutcome.DNS_ERROR, None), gone=True),
        _observation(CaptureOutcome.HTTP_ERROR, 500),
        replace(_observation(CaptureOutcome.HTTP_ERROR, 503), headers={"retry-after": "3600"}),
    ],
)
async def test_permanent_failure_is_not_retried(trouble: Observation) -> None:
    first, sleeping = ScriptedBackend(trouble), RecordedSleep()
    await RoutedCapturer(first, sleep=sleeping).capture(URL)
    assert (first.asked, sleeping.slept) == (1, [])


async def test_concurrent_pages_are_limited_per_host() -> None:
    first = ScriptedBackend(OK)
    routed = RoutedCapturer(first, pages_per_host=2)
    await asyncio.gather(*(routed.capture(f"https://a.com/{n}") for n in range(10)))
    assert first.most_at_once == 2
    await asyncio.gather(*(routed.capture(f"https://host{n}.com/") for n in range(10)))
    assert first.most_at_once == 10

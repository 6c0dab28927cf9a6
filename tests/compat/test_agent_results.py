"""Evidence of a claim, by row of the contract's table, and pages that cannot be captured."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from cache.capture import CaptureOutcome, Observation
from mind2web2 import CacheFileSys, Capture
from mind2web2.utils.page_info_retrieval import BatchBrowserManager
from tests.compat.scripted import ScriptedClient, initialized_evaluator, outcomes

A, B, C = "https://a.com/1", "https://b.com/2", "https://c.com/3"


class Found(BaseModel):
    name: str = ""


@pytest.fixture
def cache(tmp_path: Path) -> CacheFileSys:
    made = CacheFileSys(tmp_path)
    for url in (A, B, C):
        made.put_web(url, f"text of {url}", None)
    return made


class Web(BatchBrowserManager):
    """Browser manager for which every capture ends with the given ``(outcome, gone)`` or exception."""

    def __init__(self, ending: tuple[CaptureOutcome, bool] | Exception) -> None:
        super().__init__()
        self._ending = ending
        self.asked: list[str] = []

    async def observe(self, url: str) -> Observation:
        self.asked.append(url)
        if isinstance(self._ending, Exception):
            raise self._ending
        outcome, gone = self._ending
        now = datetime(2026, 1, 2, tzinfo=UTC)
        return Observation(
            url=url, outcome=outcome, gone=gone, captured_at=now, duration_s=0.1, backend="test", detail="as told",
            text="live text" if outcome is CaptureOutcome.OK else "", http_status=200, headers={"server": "x"},
        )  # fmt: skip


@pytest.mark.parametrize("sources", ["", [None], (A,), 7])
async def test_invalid_sources_fail_the_claim_without_a_model_call(sources: Any, cache: CacheFileSys):
    client = ScriptedClient()
    e = initialized_evaluator(client, cache)
    leaf = e.add_leaf("a", "a")
    assert not await e.verify("c", leaf, sources)
    assert (leaf.status, leaf.score, client.calls) == ("failed", 0.0, [])
    summary = e.get_summary()
    assert summary["status"] == "complete"
    assert outcomes(summary)["a"][0] == "failed"


async def test_fault_on_one_source_does_not_hide_support_of_another(cache: CacheFileSys):
    e = initialized_evaluator(ScriptedClient({("c", A): RuntimeError("down"), ("c", B): True}), cache)
    leaf = e.add_leaf("a", "a")
    assert await e.verify("c", leaf, [A, B])
    assert e.get_summary()["status"] == "complete"


@pytest.mark.parametrize(
    ("outcome", "gone", "ours"),
    [
        (CaptureOutcome.DNS_ERROR, True, ("failed", "source_gone")),
        (CaptureOutcome.HTTP_ERROR, False, ("not_judged", "capture_failed")),
        (CaptureOutcome.BLOCKED, False, ("not_judged", "capture_blocked")),
        (CaptureOutcome.TIMEOUT, False, ("not_judged", "timeout")),
        (CaptureOutcome.EGRESS_DENIED, False, ("not_judged", "egress_denied")),
    ],
)
async def test_only_a_page_that_is_gone_fails_the_claim(outcome: CaptureOutcome, gone: bool, ours: tuple[str, str]):
    client, web = ScriptedClient(), Web((outcome, gone))
    e = initialized_evaluator(client, browser_manager=web)
    leaf = e.add_leaf("a", "a")
    assert not await e.verify("c", leaf, A)
    assert (leaf.status, leaf.score, client.calls) == ("failed", 0.0, [])
    summary = e.get_summary()
    assert outcomes(summary)["a"] == ours
    assert summary["status"] == ("complete" if gone else "incomplete")
    assert summary["score"] == (
        {"value": 0.0, "low": 0.0, "high": 0.0} if gone else {"value": None, "low": 0.0, "high": 1.0}
    )
    assert [page["outcome"] for page in summary["pages"]] == [outcome.value]


@pytest.mark.parametrize("source", ["see above", "https://", "https://a.com (see above)", "http://[bad"])
async def test_source_that_is_not_a_url_fails_the_claim(source: str):
    web = Web((CaptureOutcome.OK, False))
    e = initialized_evaluator(ScriptedClient(), browser_manager=web)
    leaf = e.add_leaf("a", "a")
    assert not await e.verify("c", leaf, source)
    assert web.asked == []
    assert outcomes(e.get_summary())["a"] == ("failed", "source_gone")


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ("https://a.com/my file.pdf", "https://a.com/my%20file.pdf"),
        (" a.com/x y\\_z\n", "https://a.com/x%20y_z"),
        ("//www.a.com:8443/x", "https://www.a.com:8443/x"),
    ],
)
async def test_url_is_completed_and_encoded_as_browsers_do(source: str, asked: str):
    web = Web((CaptureOutcome.OK, False))
    assert await initialized_evaluator(ScriptedClient(), browser_manager=web).verify("c", None, source)
    assert web.asked == [asked]


async def test_failed_capture_is_attempted_once_per_run():
    web = Web((CaptureOutcome.TIMEOUT, False))
    e = initialized_evaluator(ScriptedClient(), browser_manager=web)
    await e.verify("c", None, A)
    await e.verify("d", None, [A, A])
    assert len(web.asked) == 1


@pytest.mark.parametrize(
    ("recorded", "outcome"),
    [
        ({"reason": "timeout: no response within 60 s"}, ("not_judged", "timeout")),
        ({"reason": "HTTP 403", "blocked": True}, ("not_judged", "capture_blocked")),
        ({"reason": "dns_error: host a.com does not exist", "gone": True}, ("failed", "source_gone")),
    ],
)
async def test_recorded_failure_fails_the_check_without_a_request(
    recorded: dict[str, Any], outcome: tuple[str, str], tmp_path: Path
):
    client, web = ScriptedClient(), Web((CaptureOutcome.OK, False))
    cache = CacheFileSys(tmp_path)
    cache.record_failure(A, **recorded)
    e = initialized_evaluator(client, cache, browser_manager=web)
    assert not await e.verify("c", e.add_leaf("leaf", "leaf"), f"{A}/")
    assert (web.asked, client.calls) == ([], [])
    summary = e.get_summary()
    assert (summary["final_score"], outcomes(summary)["leaf"]) == (0.0, outcome)


class Manager:
    """Foreign manager with the methods of autumn."""

    def __init__(self, result: Capture | Exception) -> None:
        self._result = result
        self.asked: list[str] = []

    async def capture(self, url: str, logger: Any) -> Capture:
        self.asked.append(url)
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (Capture(text="the page", status=200), ("passed", None)),
        (Capture(text="verify you are human", status=200), ("not_judged", "capture_blocked")),
        (Capture(error="HTTP 403", blocked=True, status=403), ("not_judged", "capture_blocked")),
        (ValueError("a bug"), ("not_judged", "capture_failed")),
    ],
)
async def test_manager_with_capture_decides_what_is_judged(
    result: Capture | Exception, expected: tuple[str, str | None]
):
    web, client = Manager(result), ScriptedClient()
    e = initialized_evaluator(client, browser_manager=web)
    assert await e.verify("c", e.add_leaf("leaf", "leaf"), A) == (expected[0] == "passed")
    assert (web.asked, bool(client.calls)) == ([A], expected[0] == "passed")
    assert outcomes(e.get_summary())["leaf"] == expected


async def test_corrupted_stored_page_is_never_shown_to_the_model(cache: CacheFileSys, tmp_path: Path):
    for file in tmp_path.glob("*.txt"):  # noqa: ASYNC240
        file.write_bytes(b"\0" * file.stat().st_size)
    client = ScriptedClient()
    e = initialized_evaluator(client, cache, browser_manager=Web((CaptureOutcome.TIMEOUT, False)))
    leaf = e.add_leaf("a", "a")
    assert not await e.verify("c", leaf, A)
    assert client.calls == []
    assert outcomes(e.get_summary())["a"] == ("not_judged", "evidence_corrupt")


async def test_extraction_from_an_uncaptured_page_is_incomplete():
    e = initialized_evaluator(ScriptedClient(), browser_manager=Web((CaptureOutcome.TIMEOUT, False)))
    assert await e.extract("p", Found, source=A) == Found()
    assert e.get_summary()["status"] == "incomplete"

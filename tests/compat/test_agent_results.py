"""Evidence of a claim, by row of the contract's table, and pages that cannot be captured."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from cache.capture import CaptureOutcome, Observation
from cache.errors import BrowserUnavailable
from mind2web2 import CacheFileSys, Capture, HarnessError
from mind2web2.utils.page_info_retrieval import BatchBrowserManager
from tests.compat.scripted import ScriptedClient, initialized_evaluator, nodes, outcomes, text_of, tree

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


@pytest.mark.parametrize("sources", ["", "  ", [""], [None], [5], (A,), {A}, {"url": A}, 7, [None, ""], [[A]]])
async def test_invalid_sources_fail_the_claim_without_a_model_call(sources: Any, cache: CacheFileSys):
    client = ScriptedClient()
    e = initialized_evaluator(client, cache)
    leaf = e.add_leaf("a", "a")
    assert not await e.verify("c", leaf, sources)
    assert (leaf.status, leaf.score, client.calls) == ("failed", 0.0, [])
    summary = e.get_summary()
    assert summary["status"] == "complete"
    assert outcomes(summary)["a"][0] == "failed"


async def test_duplicate_sources_are_each_judged_with_their_own_votes(cache: CacheFileSys):
    client = ScriptedClient({"c": False})
    assert not await initialized_evaluator(client, cache).verify("c", None, [A, A, B])
    assert len(client.calls) == 6


async def test_empty_and_malformed_sources_do_not_hide_support(cache: CacheFileSys):
    client = ScriptedClient()
    assert await initialized_evaluator(client, cache).verify("c", None, [None, "", "not a url", A])


async def test_fault_on_one_source_does_not_hide_support_of_another(cache: CacheFileSys):
    e = initialized_evaluator(ScriptedClient({("c", A): RuntimeError("down"), ("c", B): True}), cache)
    leaf = e.add_leaf("a", "a")
    assert await e.verify("c", leaf, [A, B])
    assert e.get_summary()["status"] == "complete"


async def test_fault_on_one_source_without_support_is_not_judged(cache: CacheFileSys):
    e = initialized_evaluator(ScriptedClient({("c", A): RuntimeError("down"), ("c", B): False}), cache)
    leaf = e.add_leaf("a", "a")
    assert not await e.verify("c", leaf, [A, B])
    summary = e.get_summary()
    assert tree(summary)["a"] == ("failed", 0.0)
    assert outcomes(summary)["a"] == ("not_judged", "llm_unavailable")


@pytest.mark.parametrize(
    ("outcome", "gone", "ours"),
    [
        (CaptureOutcome.HTTP_ERROR, True, ("failed", "source_gone")),
        (CaptureOutcome.DNS_ERROR, True, ("failed", "source_gone")),
        (CaptureOutcome.HTTP_ERROR, False, ("not_judged", "capture_failed")),
        (CaptureOutcome.BLOCKED, False, ("not_judged", "capture_blocked")),
        (CaptureOutcome.CAPTCHA, False, ("not_judged", "capture_blocked")),
        (CaptureOutcome.LOGIN_WALL, False, ("not_judged", "capture_blocked")),
        (CaptureOutcome.TIMEOUT, False, ("not_judged", "timeout")),
        (CaptureOutcome.EGRESS_DENIED, False, ("not_judged", "egress_denied")),
        (CaptureOutcome.CRASH, False, ("not_judged", "capture_failed")),
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


async def test_missing_browser_is_a_harness_error_and_no_further_page_is_loaded():
    web = Web(BrowserUnavailable("no browser here"))
    e = initialized_evaluator(ScriptedClient(), browser_manager=web)
    leaf = e.add_leaf("a", "a")
    for _ in range(2):
        with pytest.raises(HarnessError, match="no browser here"):
            await e.verify("c", leaf, [A, B])
    assert len(web.asked) <= 2  # both sources of the first claim are loaded at once
    assert outcomes(e.get_summary())["a"] == ("not_judged", "capture_failed")
    with pytest.raises(HarnessError):
        await e.extract("p", Found, source=A)
    assert len(web.asked) <= 2


@pytest.mark.parametrize(
    "source", ["N/A", "see above", "not a url", "https://", "[link]", "https://a.com (see above)", "http://[bad"]
)
async def test_source_that_is_not_a_url_fails_the_claim(source: str):
    web = Web((CaptureOutcome.OK, False))
    e = initialized_evaluator(ScriptedClient(), browser_manager=web)
    leaf = e.add_leaf("a", "a")
    assert not await e.verify("c", leaf, source)
    assert web.asked == []
    assert outcomes(e.get_summary())["a"] == ("failed", "source_gone")


@pytest.mark.parametrize("source", ["www.a.com/x", "//www.a.com/x", "www.a.com:8443/x"])
async def test_url_without_a_scheme_is_captured_over_https(source: str):
    web = Web((CaptureOutcome.OK, False))
    assert await initialized_evaluator(ScriptedClient(), browser_manager=web).verify("c", None, source)
    assert web.asked == [f"https://{source.removeprefix('//')}"]


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ("https://a.com/my file.pdf", "https://a.com/my%20file.pdf"),
        (" a.com/x y\\_z\n", "https://a.com/x%20y_z"),
        ("https://a.com/long\n/path?q=a b", "https://a.com/long/path?q=a%20b"),
        ("https://a.com/no\u00a0break", "https://a.com/no%C2%A0break"),
    ],
)
async def test_white_space_in_a_url_is_encoded_as_browsers_do(source: str, asked: str):
    web = Web((CaptureOutcome.OK, False))
    assert await initialized_evaluator(ScriptedClient(), browser_manager=web).verify("c", None, source)
    assert web.asked == [asked]


async def test_failed_capture_is_attempted_once_per_run():
    web = Web((CaptureOutcome.TIMEOUT, False))
    e = initialized_evaluator(ScriptedClient(), browser_manager=web)
    await e.verify("c", None, A)
    await e.verify("d", None, [A, A])
    assert len(web.asked) == 1


async def test_captured_page_is_stored_with_its_metadata(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    e = initialized_evaluator(ScriptedClient(), cache, browser_manager=Web((CaptureOutcome.OK, False)))
    assert await e.verify("c", None, A)
    metadata = cache.metadata(A)
    assert metadata is not None
    assert (metadata.status, metadata.headers, metadata.captured_at) == (
        200,
        {"server": "x"},
        "2026-01-02T00:00:00+00:00",
    )
    [page] = e.get_summary()["pages"]
    assert (page["url"], page["outcome"], page["captured_at"]) == (A, "ok", "2026-01-02T00:00:00+00:00")
    assert len(page["sha256"]) == 64


@pytest.mark.parametrize(
    ("recorded", "outcome"),
    [
        ({"reason": "timeout: no response within 60 s"}, ("not_judged", "timeout")),
        ({"reason": "HTTP 403", "blocked": True}, ("not_judged", "capture_blocked")),
        ({"reason": "HTTP status 503"}, ("not_judged", "capture_failed")),
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
        (Capture(text="no such page", status=404), ("passed", None)),
        (Capture(text="verify you are human", status=200), ("not_judged", "capture_blocked")),
        (Capture(text="no", status=503), ("not_judged", "capture_failed")),
        (Capture(error="HTTP 403", blocked=True, status=403), ("not_judged", "capture_blocked")),
        (Capture(error="timeout"), ("not_judged", "capture_failed")),
        (Capture(), ("not_judged", "capture_failed")),
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


@pytest.mark.parametrize("name", ["capture", "capture_page"])
async def test_replaced_method_of_the_manager_is_used(name: str, monkeypatch: pytest.MonkeyPatch):
    async def replacement(self: Any, url: str, logger: Any) -> Any:
        return Capture(text="replaced") if name == "capture" else (None, "replaced")

    client = ScriptedClient()
    sub_class = type("Sub", (BatchBrowserManager,), {name: replacement})
    assert await initialized_evaluator(client, browser_manager=sub_class()).verify("c", None, A)
    monkeypatch.setattr(BatchBrowserManager, name, replacement)
    assert await initialized_evaluator(client, browser_manager=BatchBrowserManager()).verify("c", None, B)
    assert all("replaced" in text_of(call["messages"]) for call in client.calls)


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(28, "No space left")])
async def test_page_that_cannot_be_stored_is_a_harness_error(
    error: OSError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def put_web(*arguments: Any, **keywords: Any) -> str:
        raise error

    cache = CacheFileSys(tmp_path)
    monkeypatch.setattr(cache, "put_web", put_web)
    e = initialized_evaluator(ScriptedClient(), cache, browser_manager=Web((CaptureOutcome.OK, False)))
    with pytest.raises(HarnessError, match="page cache"):
        await e.verify("c", e.add_leaf("leaf", "leaf"), A)
    assert outcomes(e.get_summary())["leaf"][0] == "not_judged"


async def test_corrupted_stored_page_is_captured_again(cache: CacheFileSys, tmp_path: Path):
    _corrupt_stored_texts(tmp_path)
    client = ScriptedClient()
    e = initialized_evaluator(client, cache, browser_manager=Web((CaptureOutcome.OK, False)))
    assert await e.verify("c", None, A)
    assert "live text" in text_of(client.calls[0]["messages"])


async def test_corrupted_stored_page_is_never_shown_to_the_model(cache: CacheFileSys, tmp_path: Path):
    _corrupt_stored_texts(tmp_path)
    client = ScriptedClient()
    e = initialized_evaluator(client, cache, browser_manager=Web((CaptureOutcome.TIMEOUT, False)))
    leaf = e.add_leaf("a", "a")
    assert not await e.verify("c", leaf, A)
    assert client.calls == []
    assert outcomes(e.get_summary())["a"] == ("not_judged", "evidence_corrupt")


def _corrupt_stored_texts(folder: Path) -> None:
    for file in folder.glob("*.txt"):
        file.write_bytes(b"\0" * file.stat().st_size)


async def test_leaf_records_claim_sources_votes_and_evidence(cache: CacheFileSys):
    e = initialized_evaluator(ScriptedClient(), cache)
    await e.verify("c", e.add_leaf("a", "a"), [A, None], additional_instruction="strictly")
    leaf = nodes(e.get_summary())["a"]
    assert (leaf["claim"], leaf["sources"], leaf["instruction"]) == ("c", [A], "strictly")
    assert (leaf["outcome"], leaf["reason"], leaf["grounded"]) == ("passed", None, False)
    assert [vote["result"] for vote in leaf["votes"]] == [True, True]
    assert leaf["reasoning"] == "ruled True"
    assert leaf["prompt"].startswith("verify_page@")
    assert len(leaf["page_digests"]) == 1


async def test_extraction_from_a_page_that_is_gone_is_complete():
    e = initialized_evaluator(ScriptedClient(), browser_manager=Web((CaptureOutcome.HTTP_ERROR, True)))
    assert await e.extract("p", Found, source=A) == Found()
    e.add_custom_node(False, "k", "k")
    assert e.get_summary()["status"] == "complete"


async def test_extraction_from_an_empty_url_returns_defaults_without_a_call():
    client = ScriptedClient()
    assert await initialized_evaluator(client).extract("p", Found, source="") == Found()
    assert client.calls == []


async def test_extraction_from_an_uncaptured_page_is_incomplete():
    e = initialized_evaluator(ScriptedClient(), browser_manager=Web((CaptureOutcome.TIMEOUT, False)))
    assert await e.extract("p", Found, source=A) == Found()
    assert e.get_summary()["status"] == "incomplete"


async def test_page_info_of_an_uncaptured_page_is_none():
    e = initialized_evaluator(ScriptedClient(), browser_manager=Web((CaptureOutcome.TIMEOUT, False)))
    assert await e.verifier.get_page_info(A) == (None, None)

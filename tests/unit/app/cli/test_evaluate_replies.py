"""``assay evaluate`` and the replies it keeps, with a stand-in model asked over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from tests.standin.llm import StandInLLM
from tests.unit.app.cli.conftest import Call

JUDGE = """
from judges.registry import judge

@judge(task="capital", description="Name the capital of France.")
async def capital(ctx):
    ctx.verify("paris", "The answer says Paris")
"""
VOTES = 2


@pytest.fixture
def model() -> Iterator[StandInLLM]:
    """A server in a thread of its own: the command runs its own loop."""
    loop, server = asyncio.new_event_loop(), StandInLLM(api_key="right")
    thread = Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(5)
    yield server
    asyncio.run_coroutine_threadsafe(server.stop(), loop).result(5)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def evaluate(assay: Call, model: StandInLLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command on a folder with one answer, about which no page is needed."""
    for place, text in (("judges/capital.py", JUDGE), ("answers/otter/capital/answer_1.md", "It is Paris.")):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text(text)
    monkeypatch.setenv("OPENAI_API_KEY", "right")
    monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
    fixed = ("evaluate", "--agent", "otter", "--judges", "judges", "--model", "openai/o4-mini", "--overwrite")
    return lambda *arguments: assay(*fixed, *arguments)


def test_replies_are_kept_in_the_data_folder_and_used_again(evaluate: Call, assay: Call, model: StandInLLM) -> None:
    assert evaluate().code == evaluate().code == 0
    assert len(model.calls) == VOTES
    assert json.loads(assay("cache", "list", "--json").out)["replies"] == VOTES


def test_without_the_cache_the_model_is_asked_anew_and_nothing_kept(
    evaluate: Call, assay: Call, model: StandInLLM
) -> None:
    assert evaluate("--no-cache").code == evaluate("--no-cache").code == 0
    assert len(model.calls) == 2 * VOTES
    assert json.loads(assay("cache", "list", "--json").out)["replies"] == 0


def test_a_cleared_cache_is_filled_anew(evaluate: Call, assay: Call, model: StandInLLM) -> None:
    evaluate()
    assay("cache", "clear")
    evaluate()
    assert len(model.calls) == 2 * VOTES


def test_a_wrong_key_is_one_call_and_one_line(
    evaluate: Call, model: StandInLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "wrong")
    ended = evaluate()
    assert (ended.code, len(model.calls)) == (1, 1)
    assert "the key is wrong or revoked" in ended.err
    assert "Traceback" not in ended.err

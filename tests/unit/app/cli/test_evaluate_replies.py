"""Reply cache of ``assay evaluate``, with a fake model server over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.loop_thread import entered_in_thread
from tests.standin.llm import StandInLLM
from tests.standin.rules import keyword_rule
from tests.unit.app.conftest import RunCommand

pytestmark = pytest.mark.slow

JUDGE = """
from judges.registry import judge

@judge(task="capital", description="Name the capital of France.")
async def capital(ctx):
    ctx.verify("paris", "The answer says Paris")
"""
VOTES = 2


@pytest.fixture
def model() -> Iterator[StandInLLM]:
    """Run the server in its own thread, because the command runs its own event loop."""
    with entered_in_thread(server := StandInLLM(api_key="right")):
        yield server


@pytest.fixture
def evaluate(assay: RunCommand, model: StandInLLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunCommand:
    """Run the command on a folder with one answer that needs no page."""
    for place, text in (("judges/capital.py", JUDGE), ("answers/otter/capital/answer_1.md", "It is Paris.")):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text(text)
    monkeypatch.setenv("OPENAI_API_KEY", "right")
    monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
    fixed = ("evaluate", "--agent", "otter", "--judges", "judges", "--model", "openai/gpt-6-luna", "--overwrite")
    return lambda *arguments: assay(*fixed, *arguments)


def test_replies_are_stored_in_the_data_folder_and_reused(
    evaluate: RunCommand, assay: RunCommand, model: StandInLLM
) -> None:
    assert evaluate().code == evaluate().code == 0
    assert len(model.calls) == VOTES
    assert json.loads(assay("admin", "cache", "--json").out)["replies"] == VOTES


def test_no_cache_requests_again_and_stores_nothing(evaluate: RunCommand, assay: RunCommand, model: StandInLLM) -> None:
    assert evaluate("--no-cache").code == evaluate("--no-cache").code == 0
    assert len(model.calls) == 2 * VOTES
    assert json.loads(assay("admin", "cache", "--json").out)["replies"] == 0


def test_wrong_key_costs_one_call_and_prints_one_line(
    evaluate: RunCommand, model: StandInLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "wrong")
    ended = evaluate()
    assert (ended.code, len(model.calls)) == (1, 1)
    assert "the key is wrong or revoked" in ended.err
    assert "Traceback" not in ended.err


def test_result_is_reused_only_for_the_same_parameters(
    assay: RunCommand, evaluate: RunCommand, model: StandInLLM
) -> None:
    again = ("evaluate", "--agent", "otter", "--judges", "judges", "--model", "openai/gpt-6-luna")
    assert evaluate().code == assay(*again).code == 0
    assert len(model.calls) == VOTES
    assert assay(*again, "--model-option", "max_tokens=5000").code == 0
    assert len(model.calls) == 2 * VOTES


def test_usd_budget_rejects_a_model_without_a_price_before_any_request(
    evaluate: RunCommand, model: StandInLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_BUDGET_USD", "1")
    ended = evaluate("--model", "openai/my-model")
    assert (ended.code, len(model.calls)) == (1, 0)
    assert "price of openai/my-model is unknown" in ended.err
    monkeypatch.setenv("ASSAY_PRICES", '"my-model" = { input = 1, output = 2 }')
    assert evaluate("--model", "openai/my-model").code == 0


def test_several_agents_are_judged_and_the_largest_losses_are_named(
    assay: RunCommand, evaluate: RunCommand, model: StandInLLM, tmp_path: Path
) -> None:
    model.rule = keyword_rule({"says paris": False})
    folder = tmp_path / "answers" / "heron" / "capital"
    folder.mkdir(parents=True)
    (folder / "answer_1.md").write_text("It is Lyon.")
    ended = evaluate("--agent", "heron")
    assert ended.code == 0, ended.err
    assert "-1.00  otter capital paris  The answer says Paris" in ended.out
    assert "-1.00  heron capital paris" in ended.out
    assert "heron is equal on the only task; too few tasks" in ended.out
    assert "assay results compare eval_results/otter eval_results/heron" in ended.out
    assert [one["agent"] for one in json.loads(evaluate("--agent", "heron", "--json").out)["agents"]] == [
        "otter",
        "heron",
    ]

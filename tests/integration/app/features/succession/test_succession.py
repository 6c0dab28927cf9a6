"""`assay judges succession` with a new judge over HTTP whose confusion matrix with the old one is known."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from app.engine.text_judging import TextCapturer
from cache.blobs import BlobStore
from cache.capture_index import FolderIndex
from cache.pages import PageCache
from judges.analysis.labels import HumanDecision, Label, LabelledPage, RecordedVerdict, label_line
from rubrics.verdict import Outcome
from tests.standin.call import Call
from tests.standin.faults import EMPTY, WRONG_KEY
from tests.standin.llm import StandInLLM
from tests.unit.app.conftest import CommandResult, RunCommand

OLD, NEW = "gpt-5-luna", "openai/gpt-6-luna"
URL = "https://pellard.example/heron"
PAGE = "The Heron 2 is a field gauge. It costs 430 crowns and weighs 310 grams."
TASKS, LEAVES = 30, 3
PASS_RATES = {"walker": 0.8, "sitter": 0.4}
PASSES_PASSED, PASSES_FAILED = 0.9, 0.15


def chance(*parts: object) -> float:
    """Return a number in [0, 1) that depends on the parts only."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6]) / 2**48


def old_verdict(agent: str, claim: str) -> bool:
    return chance("old", claim) < PASS_RATES[agent]


def new_verdict(call: Call) -> bool:
    agent = call.claim.split()[0]
    return chance("new", call.claim) < (PASSES_PASSED if old_verdict(agent, call.claim) else PASSES_FAILED)


def leaf(agent: str, task: str, n: int, model: str = OLD) -> dict[str, Any]:
    claim = f"{agent} says in {task}, claim {n}: it costs 430 crowns."
    passed = old_verdict(agent, claim)
    return {
        "id": f"leaf_{n}", "desc": claim, "claim": claim, "sources": [URL], "outcome": "passed" if passed else "failed",
        "votes": [{"result": passed, "model": model}] * 2, "model": model, "prompt": "verify_page@1",
        "reasoning": "by the old judge", "critical": False, "children": [],
    }  # fmt: skip


def result(agent: str, task: str, page: dict[str, Any], model: str = OLD) -> dict[str, Any]:
    leaves = [leaf(agent, task, n, model) for n in range(LEAVES)]
    tree = {"id": "root", "desc": "The gauge", "strategy": "parallel", "critical": False, "children": leaves}
    return {
        "id": f"res_{agent}_{task}", "agent_name": agent, "task_id": task, "answer_name": "answer_1.md", "model": model,
        "answer_sha256": "0" * 64, "status": "complete", "eval_breakdown": [{"verification_tree": tree}],
        "pages": [page], "score": {"value": 0.5, "low": 0.5, "high": 0.5}, "final_score": 0.5,
    }  # fmt: skip


@pytest.fixture
async def results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Store the page, and write results of the old judge. Return the entry of the page."""
    index = await FolderIndex.open(tmp_path / "data" / "captures")
    cache = PageCache(TextCapturer({URL: PAGE}), BlobStore.open((tmp_path / "data" / "blobs").as_uri()), index)
    page_id = (await cache.get(URL)).id
    await cache.aclose()
    page = {"url": URL, "page_id": page_id, "outcome": "ok", "kind": "web", "bodies": {"text": digest(PAGE)}}
    for agent in PASS_RATES:
        for n in range(TASKS):
            await asyncio.to_thread(write_result, tmp_path / "out", result(agent, f"task_{n}", page))
    capsys.readouterr()  # the log of the capture
    return page


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def write_result(out: Path, document: dict[str, Any]) -> None:
    target = out / document["agent_name"] / document["task_id"] / "answer_1" / "results"
    target.mkdir(parents=True, exist_ok=True)
    (target / "20261101_000000_answer_1.md.json").write_text(json.dumps(document))


@pytest.fixture
def call(assay: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("ASSAY_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("OPENAI_API_KEY", "key")

    async def run(server: StandInLLM, *arguments: str) -> CommandResult:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        return await asyncio.to_thread(assay, "judges", "succession", OLD, NEW, *arguments)

    return run


async def test_report_of_a_known_confusion_matrix_is_right_within_its_intervals(call: Any, results: Any) -> None:
    async with StandInLLM(rule=new_verdict) as server:
        ended = await call(server, "--results", "out", "--votes", "1", "--json")
        asked = len(server.calls)
        again = await call(server, "--results", "out", "--votes", "1")
    assert ended.code == 100, ended.err
    found = json.loads(ended.out)
    claims = len(PASS_RATES) * TASKS * LEAVES
    assert (found["claims"], asked, sum(found["verdicts"].values())) == (claims, claims, claims)
    rate = sum(PASS_RATES.values()) / len(PASS_RATES)
    new_rate = rate * PASSES_PASSED + (1 - rate) * PASSES_FAILED
    by_chance = rate * new_rate + (1 - rate) * (1 - new_rate)
    kappa = (rate * PASSES_PASSED + (1 - rate) * (1 - PASSES_FAILED) - by_chance) / (1 - by_chance)
    assert found["kappa"]["low"] < kappa < found["kappa"]["high"]
    for group in found["groups"]:
        share = PASS_RATES[group["name"]]
        change = (1 - share) * PASSES_FAILED - share * (1 - PASSES_PASSED)
        assert group["change"]["interval"]["low"] < change < group["change"]["interval"]["high"]
        assert group["new"]["low"] - group["old"]["low"] == pytest.approx(group["change"]["low"])
        assert (group["tasks"], group["leaves"]) == (TASKS, TASKS * LEAVES)
    assert [(one["name"], one["old_rank"], one["new_rank"]) for one in found["groups"]] == [
        ("walker", [1, 1], [1, 1]), ("sitter", [2, 2], [2, 2]),
    ]  # fmt: skip
    flip = found["flips"][0]
    assert (flip["old_reasoning"], flip["new_reasoning"]) == ("by the old judge", "by rule of the stand-in")
    assert {flip["old"], flip["new"]} == {"passed", "failed"}
    assert len(found["flips"]) == found["verdicts"]["only_new_passed"] + found["verdicts"]["only_old_passed"]
    assert found["verdict"] == "must_not_be_mixed" and found["not_judged"] == [] and found["other_prompt"] == 0
    # The second run uses cached replies.
    assert again.code == 100 and len(server.calls) == asked
    assert "Scores of the two judges must not be mixed." in again.out and "new: by rule of the stand-in" in again.out


async def test_judge_that_agrees_may_be_mixed(call: Any, results: Any) -> None:
    async with StandInLLM(rule=lambda one: old_verdict(one.claim.split()[0], one.claim)) as server:
        ended = await call(server, "--results", "out", "--votes", "1", "--margin", "0.05")
    assert ended.code == 0, ended.out + ended.err
    assert "Scores of the two judges may be mixed." in ended.out


async def test_dry_run_estimates_and_sends_nothing(call: Any, results: Any) -> None:
    async with StandInLLM(rule=new_verdict) as server:
        ended = await call(server, "--results", "out", "--agent", "walker", "--dry-run", "--json")
        text = await call(server, "--results", "out", "--dry-run")
    assert ended.code == text.code == 0, ended.err
    assert server.calls == []
    found = json.loads(ended.out)
    assert found["claims"] == TASKS * LEAVES
    assert TASKS * LEAVES * 2 <= found["calls"]["expected"] <= TASKS * LEAVES * 3
    assert found["usd"]["expected"] > 0
    assert text.out.startswith("180 claims: requests ")


async def test_claims_without_a_verdict_widen_the_new_score(call: Any, results: Any, tmp_path: Path) -> None:
    page = results | {"page_id": "page_elsewhere"}
    await asyncio.to_thread(write_result, tmp_path / "out", result("walker", "task_0", page))
    async with StandInLLM(rule=new_verdict) as server:
        ended = await call(server, "--results", "out", "--agent", "walker", "--votes", "1", "--json")
    assert ended.code == 3
    found = json.loads(ended.out)
    assert len(found["not_judged"]) == LEAVES
    (group,) = found["groups"]
    assert group["leaves"] == (TASKS - 1) * LEAVES
    assert group["new"]["high"] - group["new"]["low"] == pytest.approx(1 / TASKS)
    assert group["old"]["low"] == group["old"]["high"]


async def test_budget_stops_requests_and_claims_are_not_judged(call: Any, results: Any) -> None:
    async with StandInLLM(rule=new_verdict) as server:
        ended = await call(server, "--results", "out", "--votes", "1", "--budget", "0.0001", "--json")
        assert len(server.calls) < TASKS * LEAVES
    assert ended.code == 3, ended.err
    assert {one["reason"] for one in json.loads(ended.out)["not_judged"]} == {"budget"}


async def test_verdicts_of_other_judges_are_named_and_not_replayed(call: Any, results: Any, tmp_path: Path) -> None:
    for n in range(TASKS):
        other = result("sitter", f"task_{n}", results, model="another-judge")
        await asyncio.to_thread(write_result, tmp_path / "out", other)
    async with StandInLLM(rule=new_verdict) as server:
        ended = await call(server, "--results", "out", "--votes", "1", "--json")
        only_others = await call(server, "--results", "out", "--agent", "sitter")
    found = json.loads(ended.out)
    assert [one["name"] for one in found["groups"]] == ["walker"]
    assert found["other_verdicts"] == {"another-judge": TASKS * LEAVES}
    assert only_others.code == 2
    assert "another-judge (90)" in only_others.err


async def test_refused_key_ends_with_an_error(call: Any, results: Any) -> None:
    async with StandInLLM(rule=new_verdict, always=WRONG_KEY) as server:
        ended = await call(server, "--results", "out", "--votes", "1")
    assert ended.code == 1
    assert "Traceback" not in ended.err and "key" in ended.err.lower()


def label(n: int) -> Label:
    claim = f"walker says, claim {n}: it costs 430 crowns."
    outcome = Outcome.PASSED if old_verdict("walker", claim) else Outcome.FAILED
    human = HumanDecision.PASSED if n % 4 else HumanDecision.FAILED
    recorded = RecordedVerdict(outcome=outcome, model=OLD, reasoning="as recorded")
    return Label(
        human=human,
        claim=claim,
        sources=(URL,),
        pages=(LabelledPage(url=URL, text=PAGE),),
        judges=(recorded,),
        row=str(n),
    )


async def test_recorded_verdicts_of_label_sets_are_replayed(call: Any, tmp_path: Path) -> None:
    (tmp_path / "gauges.jsonl").write_text("".join(label_line(label(n)) for n in range(60)))
    silent = "claim 7:"
    async with StandInLLM(rule=new_verdict, fault_for=lambda one: EMPTY if silent in one.claim else None) as server:
        ended = await call(server, "--labels", "gauges.jsonl", "--votes", "1", "--json")
    assert ended.code == 3, ended.err
    found = json.loads(ended.out)
    (group,) = found["groups"]
    assert (group["name"], group["tasks"], group["leaves"], group["old_rank"]) == ("gauges", 60, 59, None)
    assert [one["leaf"] for one in found["not_judged"]] == ["7"]
    assert {name: one["raw"]["n"] for name, one in found["people"].items()} == {"old": 59, "new": 59}
    assert found["pairs"] == []


async def test_wrong_arguments_are_errors(call: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("{}\n")
    async with StandInLLM(rule=new_verdict) as server:
        for arguments, message in (
            (("--labels", "bad.jsonl", "--agent", "walker"), "--labels cannot be used"),
            (("--results", "missing"), "no such folder"),
            (("--labels", "bad.jsonl"), "not valid labels"),
            (("--labels", "bad.jsonl", "--votes", "2"), "odd number"),
        ):
            ended = await call(server, *arguments)
            assert ended.code == 2 and message in ended.err

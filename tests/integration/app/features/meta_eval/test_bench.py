"""`assay meta-eval bench` with recorded judges, the lexical judge and models over HTTP."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from judges.analysis.labels import HumanDecision, Label, LabelledPage, RecordedVerdict, label_line
from rubrics.verdict import Outcome
from tests.fakes.label_sets import PAGE
from tests.standin.call import Call
from tests.standin.faults import MALFORMED, WRONG_KEY, Fault
from tests.standin.llm import StandInLLM
from tests.unit.app.conftest import CommandResult, RunCommand

PASSED, FAILED = HumanDecision.PASSED, HumanDecision.FAILED
MODEL = "openai/gpt-6-luna"
URL = "https://pellard.example/heron"


def label(n: int, human: HumanDecision, **fields: Any) -> Label:
    page = LabelledPage(url=URL, text=PAGE)
    return Label(human=human, claim=f"Claim {n}: it costs 430 crowns.", sources=(URL,), pages=(page,), **fields)


def recorded(outcome: Outcome, model: str = "old-judge", **fields: Any) -> RecordedVerdict:
    return RecordedVerdict(outcome=outcome, model=model, input_tokens=1000, output_tokens=100, **fields)


GAUGES = [label(n, PASSED if n < 6 else FAILED, judges=(recorded(Outcome.PASSED, usd=0.002),)) for n in range(10)]
PRICES = [label(n, PASSED if n < 12 else FAILED, judges=(recorded(Outcome.PASSED, MODEL),)) for n in range(10, 14)]


@pytest.fixture
def bench(assay: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    (tmp_path / "gauges.labels.jsonl").write_text("".join(map(label_line, GAUGES)))
    (tmp_path / "prices.jsonl").write_text("".join(map(label_line, PRICES)))
    both = ("--labels", "gauges.labels.jsonl", "prices.jsonl")

    async def call(*arguments: str, server: StandInLLM | None = None, labels: Any = both) -> CommandResult:
        if server is not None:
            monkeypatch.setenv("OPENAI_API_KEY", "key")
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        return await asyncio.to_thread(assay, "meta-eval", "bench", *labels, *arguments)

    return call


def rows_of(ended: CommandResult) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {(row["set"], row["model"], row["verdicts"]): row for row in json.loads(ended.out)["rows"]}


def text_of(name: str) -> str:
    return Path(name).read_text("utf-8")


def exists(name: str) -> bool:
    return Path(name).exists()


def says_yes_below(limit: int, **options: Any) -> StandInLLM:
    return StandInLLM(rule=lambda call: int(call.claim.split()[1].rstrip(":")) < limit, **options)


async def test_live_and_recorded_judges_are_compared_side_by_side(bench: Any) -> None:
    async with says_yes_below(7) as server:
        ended = await bench("--model", MODEL, "lexical", "--json", server=server)
    assert ended.code == 0, ended.err
    rows = rows_of(ended)
    assert list(rows) == [
        ("gauges", MODEL, "asked"),
        ("gauges", "lexical/lexical", "asked"),
        ("gauges", "old-judge", "recorded"),
        ("prices", MODEL, "asked"),
        ("prices", "lexical/lexical", "asked"),
        ("prices", MODEL, "recorded"),
    ]
    live = rows["gauges", MODEL, "asked"]
    assert live["confusion"] == {"true_positive": 6, "false_positive": 1, "false_negative": 0, "true_negative": 3}
    assert (live["kappa"]["value"], live["tpr"]["value"], live["tnr"]["value"]) == (
        pytest.approx(0.783, abs=0.001),
        1,
        0.75,
    )
    assert live["quotes_found"] == {"count": 7, "of": 7, "share": 1.0}
    assert live["per_claim"]["usd_source"] == "measured"
    assert live["per_claim"]["usd"] > 0 and live["per_claim"]["input_tokens"] > 0 and live["per_claim"]["seconds"] > 0
    old = rows["gauges", "old-judge", "recorded"]
    assert (old["n"], old["per_claim"]["usd"], old["per_claim"]["usd_source"]) == (10, pytest.approx(0.002), "recorded")
    # The price of a recorded verdict without one is that of the price list.
    listed = rows["prices", MODEL, "recorded"]["per_claim"]
    assert listed["usd_source"] == "price list" and listed["usd"] > 0
    assert rows["prices", MODEL, "asked"]["confusion"]["false_negative"] == 2


async def test_unreadable_replies_and_other_faults_are_separate_shares(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(call: Call) -> Fault | None:
        if "Claim 1:" in call.claim:
            return MALFORMED
        return Fault(status=500) if "Claim 2:" in call.claim else None

    monkeypatch.setenv("ASSAY_LLM_TIMEOUT_S", "2")  # requests are repeated until then
    async with says_yes_below(7, fault_for=fault) as server:
        ended = await bench("--model", MODEL, "--json", server=server)
    assert ended.code == 3
    row = rows_of(ended)["gauges", MODEL, "asked"]
    assert (row["items"], row["n"]) == (10, 8)
    assert row["unreadable"] == {"count": 1, "of": 10, "share": 0.1}
    assert (row["not_judged"]["count"], row["not_judged"]["share"]) == (1, 0.1)
    assert row["not_judged"]["by_reason"] == {"llm_output_unusable": 1, "llm_unavailable": 1}


async def test_judge_whose_key_is_refused_stops_and_the_others_are_measured(bench: Any) -> None:
    async with StandInLLM(always=WRONG_KEY) as server:
        ended = await bench("--model", MODEL, "--model", "lexical", "--json", server=server)
    assert ended.code == 3
    assert f"stopped: {MODEL}" in ended.err
    rows = rows_of(ended)
    assert rows["gauges", MODEL, "asked"]["n"] == 0
    assert rows["gauges", "lexical/lexical", "asked"]["n"] == 10


async def test_budget_stops_the_requests_and_leaves_claims_not_judged(bench: Any) -> None:
    async with says_yes_below(7) as server:
        ended = await bench("--model", MODEL, "--budget", "0.0000001", "--json", server=server)
        assert len(server.calls) <= 1  # the first request is sent while nothing is spent
    assert ended.code == 3
    assert rows_of(ended)["prices", MODEL, "asked"]["not_judged"]["by_reason"] == {"budget": 4}


async def test_dry_run_estimates_requests_and_cost_and_sends_nothing(bench: Any) -> None:
    async with says_yes_below(7) as server:
        ended = await bench("--model", MODEL, "--dry-run", "--json", server=server)
        assert server.calls == []
    assert ended.code == 0, ended.err
    gauges, prices = json.loads(ended.out)["estimates"]
    assert (gauges["set"], gauges["claims"], prices["claims"]) == ("gauges", 10, 4)
    assert gauges["calls"]["low"] == 20 and gauges["calls"]["high"] == 30
    assert 0 < gauges["usd"]["low"] < gauges["usd"]["high"]
    assert not exists("data")


async def test_table_is_written_as_markdown_csv_and_json(bench: Any) -> None:
    ended = await bench("--out", "table.md", "--out", "table.csv", "--out", "table.json")
    assert ended.code == 0, ended.err
    assert "partial=failed" in ended.out
    markdown = text_of("table.md")
    assert "| gauges | old-judge (recorded) | 10 | 0.600 \\[" in markdown
    assert "partial=failed" in markdown
    first, second = csv.DictReader(io.StringIO(text_of("table.csv").removeprefix("\ufeff")))
    assert (first["set"], first["model"], first["n"], first["raw"]) == ("gauges", "old-judge", "10", "0.6")
    assert second["usd_source"] == "price list"
    assert len(json.loads(text_of("table.json"))["rows"]) == 2


async def test_labels_of_one_class_and_missing_verdicts_are_explained(bench: Any, tmp_path: Path) -> None:
    """Figures that need both classes, and claims that are left out, have a note instead of a guess."""
    partial = recorded(Outcome.FAILED, "careful", partial=True)
    same = [label(n, PASSED, judges=(recorded(Outcome.PASSED), partial)) for n in range(20, 23)]
    (tmp_path / "same.jsonl").write_text("".join(map(label_line, same)))
    ended = await bench("--partial", "excluded", "--out", "t.md", labels=("--labels", "same.jsonl"))
    assert ended.code == 0, ended.err
    one_class = "same, old-judge (recorded): no kappa, because both raters used one and the same category only"
    no_verdict = "claims left out, because the judge called them partly supported: 3"
    assert one_class in ended.out and "no TNR, because humans failed no item" in ended.out
    assert no_verdict in ended.out
    assert no_verdict in text_of("t.md") and "partial=excluded" in text_of("t.md")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dry-run",), "--dry-run requires at least one --model"),
        (("--out", "table.xlsx"), "must end in .md, .csv, .json"),
        (("--labels", "none.jsonl"), "none.jsonl cannot be read"),
    ],
)
async def test_wrong_arguments_are_explained(bench: Any, arguments: tuple[str, ...], message: str) -> None:
    ended = await bench(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err

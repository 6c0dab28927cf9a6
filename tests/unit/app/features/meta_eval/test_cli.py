from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from judges.analysis.labels import HumanDecision, Label, LabelledPage, RecordedVerdict, label_line
from rubrics.verdict import Outcome
from tests.unit.app.conftest import RunCommand

pytestmark = pytest.mark.slow

URL = "https://pellard.example/heron-2"
PAGE = LabelledPage(url=URL, text="The Heron 2 costs 430 crowns and weighs 310 grams.")


def label(claim: str, human: HumanDecision, judge: Outcome = Outcome.PASSED, pages=(PAGE,)) -> Label:
    return Label(
        human=human,
        claim=claim,
        sources=(URL,),
        pages=pages,
        reviewer="Ada",
        reason="I looked it up.",
        task_id="gauges",
        leaf="heron/price",
        judge=RecordedVerdict(outcome=judge, model="gpt-6-luna", prompt="verify_page@1"),
    )


LABELS = (
    label("The Heron 2 costs 430 crowns", HumanDecision.PASSED),
    label("The Heron 2 costs 410 crowns", HumanDecision.FAILED, Outcome.FAILED),
    label("The Heron 2 weighs 310 grams", HumanDecision.FAILED),
    label("The Heron 2 weighs 340 grams", HumanDecision.FAILED),
)


@pytest.fixture
def labels(tmp_path: Path) -> str:
    (tmp_path / "labels.jsonl").write_text("".join(map(label_line, LABELS)))
    return "labels.jsonl"


def test_recorded_verdicts_are_measured_without_a_model(assay: RunCommand, labels: str, tmp_path: Path) -> None:
    ended = assay("meta-eval", "measure", labels, "--json")

    assert ended.code == 0
    (judge,) = json.loads(ended.out)["judges"]
    assert (judge["model"], judge["verdicts"], judge["n"]) == ("gpt-6-luna", "recorded", 4)
    assert judge["confusion"] == {"true_positive": 1, "false_positive": 2, "false_negative": 0, "true_negative": 1}
    assert not (tmp_path / "data").exists()  # no model is called, so no data folder is created


def test_labels_are_read_from_standard_input(assay: RunCommand, labels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from_file = assay("meta-eval", "measure", labels, "--model", "lexical", "--json")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(labels).read_bytes())))
    from_stdin = assay("meta-eval", "measure", "-", "--model", "lexical", "--json")

    assert from_stdin.code == 0, from_stdin.err
    counted = [json.loads(ended.out)["judges"][0]["confusion"] for ended in (from_file, from_stdin)]
    assert counted[0] == counted[1]


def test_output_in_a_missing_folder_is_refused_before_the_model_is_asked(assay: RunCommand, labels: str) -> None:
    ended = assay("meta-eval", "measure", labels, "--model", "lexical", "--out", "none/report.json")

    assert (ended.code, ended.out) == (2, "")
    assert "--out none/report.json: no such folder none" in ended.err


def test_model_is_called_and_measured(assay: RunCommand, labels: str) -> None:
    ended = assay("meta-eval", "measure", labels, "--model", "lexical", "--out", "report.json")

    assert ended.code == 0, ended.err
    report = json.loads(Path("report.json").read_text())
    measured = report["judges"][0]
    assert (measured["model"], measured["verdicts"], measured["n"]) == ("lexical/lexical", "asked", 4)
    assert measured["confusion"] == {"true_positive": 1, "false_positive": 1, "false_negative": 0, "true_negative": 2}
    assert "judge passed, people failed: The Heron 2 weighs 310 grams" in ended.out
    assert "Ada: I looked it up." in ended.out
    assert "gpt-6-luna (recorded)" in ended.out

from __future__ import annotations

import json

from answers.submission import Answer
from judges.registry import Judge, JudgeKind
from judges.result import LEXICAL_NOTICE, RESULT_SCHEMA_VERSION, RunFacts, build_result, native_summary, page_json
from judges.runner import ExtractionRecord, Judgement
from rubrics.rubric import Rubric
from rubrics.tree import RubricNode
from rubrics.verdict import Claim, Outcome, Reason, Usage, Verdict
from tests.fakes.pages import page

LOST = Verdict(outcome=Outcome.NOT_JUDGED, reason=Reason.TIMEOUT, prompt="verify_answer@1", usage=Usage(calls=1))


def judgement(*verdicts: Verdict, extractions: tuple[ExtractionRecord, ...] = ()) -> Judgement:
    rubric = Rubric("t", "Who?")
    for number, verdict in enumerate(verdicts):
        node = RubricNode(id=f"leaf{number}", desc="d", claim=Claim(text="d"), verdict=verdict)
        rubric.add(rubric.root, node)
    answer = Answer(name="answer_1.md", text="x")
    return Judgement(judge=Judge(task="t"), answer=answer, rubric=rubric, model="gpt-6-luna", extractions=extractions)


JUDGE = {"model": "gpt-6-luna", "reasoning_effort": "max", "temperature": None}


def result(summary: dict[str, object], *, model: str = "gpt-6-luna") -> dict[str, object]:
    facts = RunFacts(
        id="r1",
        judge=Judge(task="t", version="3", sha256="ab" * 32, kind=JudgeKind.MIND2WEB2),
        judged_with={"judge": JUDGE},
        model=model,
        prompts=["b@1", "a@2", "b@1"],
        answer_sha256="cd" * 32,
        usage=Usage(calls=3, usd=None),
        timing={"judging_s": 1.5},
        pages=[page_json(page().capture)],
    )
    return build_result(summary, facts)


def test_summary_has_the_public_shape_and_both_scores():
    summary = native_summary(judgement(Verdict(outcome=Outcome.PASSED), LOST), agent_name="demo")
    assert list(summary)[:7] == [
        "agent_name",
        "answer_name",
        "final_score",
        "judge_model",
        "extract_model",
        "eval_breakdown",
        "tree_statistics",
    ]
    assert (summary["final_score"], summary["status"]) == (0.5, "incomplete")
    assert summary["score"] == {"value": None, "low": 0.5, "high": 1.0}
    assert summary["tree_statistics"] == {"depth": 1, "total_nodes": 3, "leaf_nodes": 2}


def test_info_lists_extractions_in_order_with_errors():
    records = (ExtractionRecord(name="who", value={"a": 1}), ExtractionRecord(name="where", error="503"))
    info = native_summary(judgement(LOST, extractions=records), agent_name="demo")["eval_breakdown"][0]["info"]
    assert info == [{"who": {"a": 1}}, {"where": {"error": "503"}}]


def test_result_has_every_field_of_the_contract_and_is_json():
    made = json.loads(json.dumps(result(native_summary(judgement(LOST), agent_name="demo"))))
    contract = (
        "schema_version id task_id status score final_score score_strict agent_name answer_name judge_model "
        "extract_model eval_breakdown tree_statistics judge script model eval_script_sha256 "
        "prompts answer_sha256 tool_version usage timing pages"
    )
    assert set(contract.split()) <= set(made)
    assert made["schema_version"] == RESULT_SCHEMA_VERSION
    assert made["prompts"] == ["a@2", "b@1"]
    assert made["judge"] == JUDGE
    assert made["script"] == {"name": "evaluate_answer", "version": "3", "kind": "mind2web2", "sha256": "ab" * 32}
    assert made["eval_script_sha256"] == "ab" * 32
    assert made["usage"]["usd"] is None
    assert "notice" not in made


def test_result_of_the_lexical_judge_has_a_notice():
    assert result({"status": "complete"}, model="lexical")["notice"] == LEXICAL_NOTICE

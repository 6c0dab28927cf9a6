from __future__ import annotations

import json
from collections.abc import Iterable

from judges.analysis.labels import HumanDecision, Label, RecordedVerdict
from judges.analysis.meta_eval.bench import SetTally, report_json
from judges.analysis.meta_eval.items import Item, JudgedItem, PartialRule, items_of
from judges.analysis.meta_eval.judge_agreement import JudgeTally, RecordedTallies
from rubrics.verdict import Outcome, Reason, Usage, Verdict, Vote

PASSED, FAILED = HumanDecision.PASSED, HumanDecision.FAILED


def label(
    n: int, human: HumanDecision, judge: Outcome | None = None, *, model: str | None = "gpt-6-luna", task="gauges"
) -> Label:
    recorded = None if judge is None else RecordedVerdict(outcome=judge, model=model, prompt="verify_page@1")
    return Label(
        human=human, claim=f"Claim {n}", reviewer="Ada", reason="I looked.", task_id=task, leaf=f"l{n}", judge=recorded
    )


def judge_verdict(outcome: Outcome, *, votes: int = 2, usd: float = 0.01, reason: Reason | None = None) -> Verdict:
    return Verdict(
        outcome=outcome,
        reason=reason,
        reasoning="Because.",
        votes=tuple(Vote(result=outcome is Outcome.PASSED, model="m") for _ in range(votes)),
        prompt="verify_page@1" if votes else None,
        usage=Usage(calls=votes, usd=usd),
    )


def agreement_of_asked(model: str, asked: list[JudgedItem], *, votes: int) -> JudgeTally:
    tally = JudgeTally(model=model, asked=True, votes=votes)
    for one in asked:
        tally.add_asked(one)
    return tally


def agreement_of_recorded(items: Iterable[Item]) -> list[JudgeTally]:
    tallies = RecordedTallies()
    for item in items:
        tallies.add(item)
    return tallies.results()


HUMANS = [PASSED] * 6 + [FAILED] * 4
JUDGE = [Outcome.PASSED] * 5 + [Outcome.FAILED] + [Outcome.FAILED] * 3 + [Outcome.PASSED]


def test_verdicts_are_compared_with_human_labels() -> None:
    items = items_of(label(n, human, task="a" if n < 5 else "b") for n, human in enumerate(HUMANS))
    got = agreement_of_asked(
        "openai/x", [JudgedItem(item=i, verdict=judge_verdict(j)) for i, j in zip(items, JUDGE, strict=True)], votes=3
    )

    counts = got.agreement.confusion
    assert (counts.true_positive, counts.false_negative, counts.false_positive, counts.true_negative) == (5, 1, 1, 3)
    assert {task: found.total() for task, found in got.by_task.items()} == {"a": 5, "b": 5}
    assert [disagreement.item.label.claim for disagreement in got.disagreements] == ["Claim 5", "Claim 9"]
    assert (got.prompts, got.usage.calls, round(got.usage.usd or 0, 6)) == ({"verify_page@1"}, 20, 0.1)


def test_not_judged_items_are_counted_separately() -> None:
    items = items_of(label(n, PASSED) for n in range(3))
    verdicts = [
        judge_verdict(Outcome.PASSED),
        judge_verdict(Outcome.NOT_JUDGED, votes=0, reason=Reason.CAPTURE_FAILED),
        judge_verdict(Outcome.FAILED, votes=0, reason=Reason.SOURCE_GONE),
    ]
    got = agreement_of_asked(
        "m", [JudgedItem(item=i, verdict=v) for i, v in zip(items, verdicts, strict=True)], votes=3
    )

    assert got.agreement.confusion.n == 1
    assert [one.reason for one in got.unjudged] == ["capture_failed"]
    assert got.without_model == 1


def test_recorded_verdicts_are_measured_by_model() -> None:
    items = items_of(
        [
            label(1, PASSED, Outcome.PASSED),
            label(2, FAILED, Outcome.PASSED),
            label(3, PASSED, Outcome.NOT_JUDGED),
            label(4, PASSED, Outcome.FAILED, model="other"),
            label(5, PASSED, Outcome.PASSED, model=None),
            label(6, PASSED),
        ]
    )
    first, second = agreement_of_recorded(items)

    assert (first.model, first.agreement.confusion.n, len(first.unjudged)) == ("gpt-6-luna", 2, 1)
    assert (second.model, second.agreement.confusion.false_negative) == ("other", 1)


def test_report_is_json_and_lists_every_disagreement_with_both_reasons() -> None:
    labels = tuple(label(n, human, judge) for n, (human, judge) in enumerate(zip(HUMANS, JUDGE, strict=True)))
    items = items_of(labels)
    summary = SetTally("set")
    for item in items:
        summary.add(item)
    report = report_json(summary.as_json("a" * 64), agreement_of_recorded(items), rule=PartialRule.FAILED)

    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert report["labels"]["usable"] == 10
    assert report["labels"]["left_out"] == {"decided_by_code": 0, "unclear": 0, "people_disagree": 0, "partial": 0}
    (judge,) = report["judges"]
    assert judge["raw"]["value"] == 0.8
    assert [
        (disagreement["leaf"], disagreement["human"], disagreement["judge"]) for disagreement in judge["disagreements"]
    ] == [
        ("l5", "passed", "failed"),
        ("l9", "failed", "passed"),
    ]
    assert judge["disagreements"][0]["people"] == [{"reviewer": "Ada", "human": "passed", "reason": "I looked."}]

"""Succession of judges: exact cases, verdicts, and coverage by simulation with a known confusion matrix."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from app.features.succession import cli
from judges.analysis import succession as module
from judges.analysis.labels import HumanDecision, Label
from judges.analysis.meta_eval.ask import JudgedItem
from judges.analysis.meta_eval.items import Item
from judges.analysis.overrides import judged_tree
from judges.analysis.succession import (
    Mixing,
    Replayed,
    ScoredTwice,
    StoredRequest,
    requests_of,
    scored_twice,
    succession,
)
from rubrics.verdict import Outcome, Reason, Verdict, Vote

LEAVES = 5


def leaf(id: str, outcome: str, **fields: Any) -> dict[str, Any]:
    votes = [{"result": outcome == "passed"}] if outcome in ("passed", "failed") else []
    decided: dict[str, Any] = {"id": id, "outcome": outcome, "votes": votes, "children": [], "claim": f"claim {id}"}
    return decided | {"model": "old-1", "sources": None, "prompt": "verify_answer@1"} | fields


def result(*leaves: dict[str, Any], task: str = "a") -> dict[str, Any]:
    tree = {"id": "root", "strategy": "parallel", "critical": False, "children": list(leaves)}
    names = {"id": f"res_{task}", "task_id": task, "answer_name": "answer_1.md"}
    return names | {"eval_breakdown": [{"verification_tree": tree}]}


def replayed(request: StoredRequest, new: bool | None) -> Replayed:
    """Return the request with this verdict of the new judge; None: a fault."""
    verdict = Verdict(outcome=Outcome.NOT_JUDGED, reason=Reason.LLM_UNAVAILABLE)
    if new is not None:
        verdict = Verdict(outcome=Outcome.PASSED if new else Outcome.FAILED, votes=(Vote(result=new, model="new"),))
    return Replayed(request=request, asked=JudgedItem(item=request.item, verdict=verdict))


def score_of(document: dict[str, Any], **new: bool | None) -> ScoredTwice:
    """Return the scores of a result under both judges. Leaves that are not named keep their verdict."""
    root = judged_tree(document)
    assert root is not None
    found = [replayed(one, new.get(one.leaf, one.old)) for one in requests_of(document, "", old="old-1", group="g")]
    return scored_twice(root, found, group="g", task_id="a", run="1")


def test_flipped_leaf_changes_the_score() -> None:
    found = score_of(result(leaf("x", "passed"), leaf("y", "failed")), x=False)
    assert (found.old, found.new, found.difference) == ((0.5, 0.5), (0.0, 0.0), (-0.5, -0.5))


def test_leaf_without_a_verdict_of_the_new_judge_is_unknown() -> None:
    found = score_of(result(leaf("x", "passed"), leaf("y", "failed")), x=None)
    assert (found.old, found.new, found.difference) == ((0.5, 0.5), (0.0, 0.5), (-0.5, 0.0))


def test_flip_that_opens_a_gate_makes_the_leaves_behind_it_unknown() -> None:
    found = score_of(result(leaf("x", "failed"), leaf("behind", "skipped", blocked_by="x")), x=True)
    assert (found.old, found.new) == ((0.0, 0.0), (0.5, 1.0))


def test_leaf_that_no_judge_decided_adds_nothing_to_the_difference() -> None:
    found = score_of(result(leaf("x", "passed"), leaf("y", "not_judged")), x=True)
    assert (found.old, found.difference) == ((0.5, 1.0), (0.0, 0.0))


def test_only_claims_that_the_old_judge_decided_are_replayed() -> None:
    leaves = (
        leaf("mine", "failed", reasoning="The page says 430."), leaf("other", "passed", model="old-2"),
        leaf("code", "passed", votes=[], model=None), leaf("open", "not_judged"), leaf("skipped", "skipped"),
    )  # fmt: skip
    (found,) = requests_of(result(*leaves), "the answer", old="openai/old-1", group="walker")
    assert (found.leaf, found.old, found.reasoning, found.group) == ("mine", False, "The page says 430.", "walker")
    assert (found.item.label.claim, found.item.label.answer) == ("claim mine", "the answer")


def simulated(
    seed: int, agents: dict[str, float], new_judge: Callable[[random.Random, str, bool], bool], *, tasks: int
) -> tuple[list[Replayed], list[ScoredTwice]]:
    """Return verdicts of two judges on answers of agents, by the share of leaves that the old judge passes."""
    rng = random.Random(seed)
    everything, scores = [], []
    for agent, rate in agents.items():
        for task in range(tasks):
            pairs = []
            for n in range(LEAVES):
                old = rng.random() < rate
                label = Label(human=HumanDecision.UNCLEAR, claim=f"claim {n}")
                request = StoredRequest(
                    group=agent, task_id=str(task), answer_name="answer_1.md", result_id="", leaf=str(n), old=old,
                    item=Item(label=label, labels=(label,), human=None),
                )  # fmt: skip
                pairs.append(replayed(request, new_judge(rng, agent, old)))
            everything += pairs
            before = sum(one.request.old for one in pairs) / LEAVES
            after = sum(bool(one.new) for one in pairs) / LEAVES
            scores.append(
                ScoredTwice(group=agent, task_id=str(task), run="1", old=(before, before), new=(after, after))
            )
    return everything, scores


PASSES_PASSED, PASSES_FAILED = 0.85, 0.1
AGENTS = {"strong": 0.8, "weak": 0.4}
SIMULATIONS = 60


def known_confusion(rng: random.Random, agent: str, old: bool) -> bool:
    return rng.random() < (PASSES_PASSED if old else PASSES_FAILED)


@pytest.mark.slow
def test_intervals_cover_the_true_figures_of_a_known_confusion_matrix() -> None:
    rate = sum(AGENTS.values()) / len(AGENTS)
    both, neither = rate * PASSES_PASSED, (1 - rate) * (1 - PASSES_FAILED)
    new_rate = both + (1 - rate) * PASSES_FAILED
    chance = rate * new_rate + (1 - rate) * (1 - new_rate)
    true_kappa = (both + neither - chance) / (1 - chance)
    covered = dict.fromkeys(("kappa", "offset", *AGENTS), 0)
    for seed in range(SIMULATIONS):
        found = succession(*simulated(seed, AGENTS, known_confusion, tasks=40))
        low, high = found.kappa.low, found.kappa.high
        assert low is not None and high is not None
        covered["kappa"] += low <= true_kappa <= high
        for one in found.groups:
            share = AGENTS[one.name]
            true_change = (1 - share) * PASSES_FAILED - share * (1 - PASSES_PASSED)
            interval = one.change.interval
            assert interval is not None
            covered[one.name] += interval.low <= true_change <= interval.high
        interval = found.offset.interval
        assert interval is not None
        covered["offset"] += interval.low <= (1 - rate) * PASSES_FAILED - rate * (1 - PASSES_PASSED) <= interval.high
    # 95 % intervals: fewer than 52 of 60 has a probability below 1 % per figure. The seeds are fixed.
    assert min(covered.values()) >= 52, covered


def test_judges_that_agree_may_be_mixed() -> None:
    found = succession(*simulated(1, AGENTS, lambda rng, agent, old: old, tasks=40))
    assert (found.mixing, found.reasons, found.kappa.value) == (Mixing.YES, (), 1.0)
    assert [(one.name, one.flips, one.old_rank, one.new_rank) for one in found.groups] == [
        ("strong", 0, (1, 1), (1, 1)), ("weak", 0, (2, 2), (2, 2)),
    ]  # fmt: skip


def test_few_tasks_or_leaves_do_not_show_that_judges_may_be_mixed() -> None:
    few = succession(*simulated(1, AGENTS, lambda rng, agent, old: old, tasks=29))
    assert few.mixing is Mixing.NO
    assert few.reasons[0].startswith("strong: only 29 of at least 30 tasks")
    wide = succession(*simulated(1, AGENTS, lambda rng, agent, old: old, tasks=40), margin=0.01)
    assert wide.mixing is Mixing.NO
    assert "not within 0.01 around 0" in wide.reasons[0]


def test_change_that_is_the_same_for_all_agents_is_an_offset() -> None:
    def stricter(rng: random.Random, agent: str, old: bool) -> bool:
        return old and rng.random() >= 0.12

    agents = {"a": 0.6, "b": 0.6}
    found = succession(*simulated(3, agents, stricter, tasks=400))
    assert found.mixing is Mixing.OFFSET, found.reasons
    assert found.offset.interval is not None
    assert found.offset.interval.low < -0.072 < found.offset.interval.high
    assert any("around 0" in reason for reason in found.reasons)
    alone = succession(*simulated(3, {"a": 0.6}, stricter, tasks=400))
    assert alone.mixing is Mixing.NO
    assert any("at least two agents" in reason for reason in alone.reasons)


def test_change_that_differs_between_agents_must_not_be_mixed() -> None:
    def favours_b(rng: random.Random, agent: str, old: bool) -> bool:
        return old and (agent == "b" or rng.random() >= 0.3)

    found = succession(*simulated(3, {"a": 0.7, "b": 0.6}, favours_b, tasks=400))
    assert found.mixing is Mixing.NO
    (pair,) = found.pairs
    assert pair.reversed
    assert "a and b change places, and one of the judges separates them" in found.reasons
    assert {one.name: (one.old_rank, one.new_rank) for one in found.groups} == {
        "a": ((1, 1), (2, 2)), "b": ((2, 2), (1, 1)),
    }  # fmt: skip


def test_judges_without_variance_must_not_be_mixed() -> None:
    found = succession(*simulated(1, {"a": 1.0}, lambda rng, agent, old: old, tasks=40))
    assert found.mixing is Mixing.NO
    assert any("kappa of the judges is unknown" in reason for reason in found.reasons)


def test_without_any_verdict_of_the_new_judge_nothing_is_shown() -> None:
    everything, _ = simulated(1, {"a": 0.5}, known_confusion, tasks=30)
    lost = [replayed(one.request, None) for one in everything]
    found = succession(lost, [module.claim_scored_twice(one) for one in lost])
    assert (found.mixing, found.confusion.n, found.kappa.value) == (Mixing.NO, 0, None)


def test_default_margin_of_the_command_is_that_of_the_rule() -> None:
    assert pytest.approx(module.MARGIN) == cli.MARGIN

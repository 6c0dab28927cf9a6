"""Juries: how votes combine, missing votes, and the comparison with the members."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judges.analysis.labels import HumanDecision, Label, RecordedVerdict
from judges.analysis.meta_eval.bench import bench_notes, bench_row, csv_cells, jury_cells, jury_row
from judges.analysis.meta_eval.items import Item, PartialRule, items_of
from judges.analysis.meta_eval.judge_agreement import agreement_of_recorded
from judges.analysis.meta_eval.jury import Jury, JuryAgreement, JuryTally, Member
from judges.voting import JuryRule, jury_verdict
from rubrics.verdict import Outcome

VOTES = st.lists(st.sampled_from([True, False, None]), min_size=2, max_size=7)
RULES = st.sampled_from(list(JuryRule))


def fits(votes: list[bool | None], rule: JuryRule) -> bool:
    return rule is JuryRule.UNANIMITY or len(votes) % 2 == 1


def completions(votes: list[bool | None]) -> list[list[bool]]:
    """Return every way in which the missing votes could have been given."""
    options = [[True, False] if vote is None else [vote] for vote in votes]
    return [list(each) for each in itertools.product(*options)]


@given(VOTES, RULES)
def test_jury_has_a_verdict_exactly_if_missing_votes_could_not_change_it(
    votes: list[bool | None], rule: JuryRule
) -> None:
    assume(fits(votes, rule))
    possible = {jury_verdict(each, rule) for each in completions(votes)}
    assert None not in possible
    assert jury_verdict(votes, rule) == (possible.pop() if len(possible) == 1 else None)


@given(VOTES, RULES)
def test_missing_vote_never_counts_as_a_vote(votes: list[bool | None], rule: JuryRule) -> None:
    """Losing a vote can only lose the verdict: it never fails a claim, and never passes one."""
    assume(fits(votes, rule))
    for n in range(len(votes)):
        assert jury_verdict([*votes[:n], None, *votes[n + 1 :]], rule) in (jury_verdict(votes, rule), None)
    if False not in votes:
        assert jury_verdict(votes, rule) is not False
    if True not in votes:
        assert jury_verdict(votes, rule) is not True


@given(VOTES, RULES, st.randoms(use_true_random=False))
def test_order_of_the_votes_does_not_matter(votes: list[bool | None], rule: JuryRule, random: Any) -> None:
    assume(fits(votes, rule))
    shuffled = random.sample(votes, len(votes))
    assert jury_verdict(shuffled, rule) == jury_verdict(votes, rule)


@given(st.lists(st.booleans(), min_size=2, max_size=7))
def test_complete_votes_decide_by_the_named_rule(votes: list[bool]) -> None:
    assert jury_verdict(votes, JuryRule.UNANIMITY) == all(votes)
    if len(votes) % 2:
        assert jury_verdict(votes, JuryRule.MAJORITY) == (sum(votes) > len(votes) / 2)


def member(name: str, *, run: str = "", asked: bool = False) -> Member:
    return Member(name, run, asked)


@pytest.mark.parametrize(
    ("names", "rule", "message"),
    [
        ("a", JuryRule.MAJORITY, "2 to 9 members, not 1"),
        ("abcdefghij", JuryRule.UNANIMITY, "2 to 9 members, not 10"),
        ("ab", JuryRule.MAJORITY, "odd number of members"),
        ("aab", JuryRule.MAJORITY, "twice"),
    ],
)
def test_jury_that_cannot_decide_is_refused(names: str, rule: JuryRule, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Jury(tuple(map(member, names)), rule)


def item(n: int, human: bool, votes: Mapping[str, bool | None], **fields: Any) -> Item:
    outcomes = {True: Outcome.PASSED, False: Outcome.FAILED, None: Outcome.NOT_JUDGED}
    label = Label(
        human=HumanDecision.PASSED if human else HumanDecision.FAILED,
        claim=f"Claim {n}",
        judges=tuple(
            RecordedVerdict(outcome=outcomes[vote], model=model, usd=PRICES[model], **fields)
            for model, vote in votes.items()
        ),
    )
    [one] = items_of([label])
    return one


PRICES = {"a": 0.001, "b": 0.002, "c": 0.004}


def measured(items: list[Item], rule: JuryRule = JuryRule.MAJORITY) -> JuryAgreement:
    tally = JuryTally(Jury(tuple(map(member, "abc")), rule))
    for one in items:
        tally.add(one, {}, PartialRule.FAILED)
    return tally.result()


def wrong_at(*places: tuple[int, ...]) -> list[Item]:
    """Return 12 claims on which a, b and c err at the places."""
    return [
        item(n, n % 2 == 0, {name: (n % 2 == 0) is (n not in each) for name, each in zip("abc", places, strict=True)})
        for n in range(12)
    ]


def test_jury_of_members_that_err_on_different_claims_is_right_everywhere() -> None:
    got = measured(wrong_at((0,), (3, 4), (5, 6, 7)))
    assert got.agreement.agreement.raw.value == 1
    assert (got.common, got.best) == (12, 0)
    assert got.gain.value == pytest.approx(1 - 5 / 6)
    assert got.error_correlation is not None and got.error_correlation < 0
    assert got.effective_votes.value is not None and got.effective_votes.value > 3


def test_jury_of_members_that_err_together_gains_nothing() -> None:
    got = measured(wrong_at((1, 2), (1, 2), (1, 2)))
    assert got.effective_votes.value == pytest.approx(1)
    assert got.gain.value == 0
    row = jury_row("set", got, [])
    assert (row["jury"]["usd_per_point"], row["jury"]["usd_per_point_reason"]) == (
        None,
        "kappa is not higher than that of the best member",
    )


def test_claims_without_enough_votes_are_not_judged_and_the_comparison_uses_common_claims() -> None:
    right = {"a": True, "b": True, "c": True}
    items = [
        item(0, True, right),
        item(1, True, {**right, "c": None}),
        item(2, True, {**right, "b": None, "c": None}),
        item(3, True, {"a": True, "b": False}),  # c was never recorded
        item(4, False, {"a": False, "b": None, "c": False}),
    ]
    got = measured(items)
    counts = got.agreement.agreement.confusion
    assert (counts.true_positive, counts.false_negative, counts.true_negative, counts.false_positive) == (2, 0, 1, 0)
    assert dict(got.agreement.unjudged_by_reason) == {"member_not_judged": 2}
    assert (got.agreement.items, got.common) == (5, 1)
    unanimous = measured(items, JuryRule.UNANIMITY).agreement
    counts = unanimous.agreement.confusion
    assert (counts.true_positive, counts.false_negative, counts.true_negative) == (1, 1, 1)
    assert dict(unanimous.unjudged_by_reason) == {"member_not_judged": 2}


def test_verdicts_that_the_rule_excludes_or_that_differ_are_missing_votes() -> None:
    tally = JuryTally(Jury((member("a"), member("b")), JuryRule.UNANIMITY))
    partial = RecordedVerdict(outcome=Outcome.FAILED, model="b", partial=True)
    passed = RecordedVerdict(outcome=Outcome.PASSED, model="a")
    differ = RecordedVerdict(outcome=Outcome.FAILED, model="b"), RecordedVerdict(outcome=Outcome.PASSED, model="b")
    for n, judges in enumerate([(passed, partial), (passed, *differ)]):
        for one in items_of([Label(human=HumanDecision.PASSED, claim=f"{n}", judges=judges)], PartialRule.EXCLUDED):
            tally.add(one, {}, PartialRule.EXCLUDED)
    assert dict(tally.result().agreement.unjudged_by_reason) == {"member_not_judged": 2}


def test_asked_members_vote_with_their_new_verdicts_only() -> None:
    """A model that is asked now and whose call fails has no vote, although an older verdict is recorded."""
    one = item(0, False, {"a": True, "b": False})
    tally = JuryTally(Jury((member("a", asked=True), member("b")), JuryRule.UNANIMITY))
    tally.add(one, {("a", id(one)): False}, PartialRule.FAILED)
    two = item(1, True, {"a": True, "b": True})
    tally.add(two, {("a", id(two)): None}, PartialRule.FAILED)
    got = tally.result()
    assert (got.agreement.agreement.confusion.true_negative, got.common) == (1, 1)
    assert got.agreement.unjudged_by_reason["member_not_judged"] == 1


def rows(items: list[Item]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    single = [bench_row("set", one, lambda model: None) for one in agreement_of_recorded(items)]
    return single, jury_row("set", measured(items), single)


def test_row_of_a_jury_adds_the_prices_of_its_members_and_prices_a_point_of_kappa() -> None:
    single, row = rows(wrong_at((0,), (3, 4), (5, 6, 7)))
    assert row["per_claim"]["usd"] == pytest.approx(0.007)
    assert row["per_claim"]["usd_source"] == "recorded"
    assert (row["n"], row["verdicts"], row["not_judged"]["count"]) == (12, "jury", 0)
    jury = row["jury"]
    assert [each["model"] for each in jury["members"]] == ["a", "b", "c"]
    assert jury["best_member"] == {"model": "a", "run": None, "verdicts": "recorded"}
    # (0.007 - 0.001) USD for 16.7 points
    assert jury["usd_per_point"] == pytest.approx(0.006 / (100 / 6))
    assert all(each["jury"] is None for each in single)
    assert jury_cells(row)[1] == "majority of a (recorded), b (recorded), c (recorded)"
    assert len(csv_cells(row)) == len(csv_cells(single[0]))


def test_jury_with_a_member_of_unknown_price_has_no_price() -> None:
    items = wrong_at((0,), (3, 4), (5, 6, 7))
    single, _ = rows(items)
    single[1]["per_claim"]["usd"] = None
    row = jury_row("set", measured(items), single)
    assert row["per_claim"]["usd"] is None and row["per_claim"]["usd_source"] is None
    [note] = bench_notes({"rows": [row]})
    assert "no price of a point of kappa, because the price of a member is unknown" in note


def test_prices_of_runs_of_one_model_belong_to_their_members() -> None:
    """Two runs of one model are two members, each with its own price."""
    labels = [
        Label(
            human=HumanDecision.PASSED,
            claim=f"{n}",
            judges=tuple(
                RecordedVerdict(outcome=Outcome.PASSED, model="m", run=run, usd=usd)
                for run, usd in (("may", 0.1), ("june", 0.3))
            ),
        )
        for n in range(3)
    ]
    items = items_of(labels)
    jury = Jury((member("m", run="may"), member("m", run="june")), JuryRule.UNANIMITY)
    tally = JuryTally(jury)
    for one in items:
        tally.add(one, {}, PartialRule.FAILED)
    single = [bench_row("set", one, lambda model: None) for one in agreement_of_recorded(items)]
    row = jury_row("set", tally.result(), single)
    assert row["per_claim"]["usd"] == pytest.approx(0.4)
    assert row["jury"]["best_member"] is None
    assert "no kappa" in bench_notes({"rows": [row]})[0]

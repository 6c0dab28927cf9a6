"""Quality gate: thresholds on the figures of an agent and on its regression against a baseline. Pure functions.

A check fails only if even the best possible outcome of the unjudged answers is not enough. It passes only if the worst
possible outcome is enough. Otherwise it is ``open``, because an unjudged answer is neither right nor wrong. Figures are
compared with a tolerance of 1e-9, so a mean of 0.6, 0.8 and 1.0 reaches 0.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.number_format import formatted
from rubrics.scoring import reaches

Json = Mapping[str, Any]


class GateState(StrEnum):
    """State of a check or of the whole gate."""

    PASSED = "passed"
    FAILED = "failed"
    OPEN = "open"
    """Depends on answers that were not judged."""


class RegressionRule(StrEnum):
    """Rule that decides when a loss against the baseline is too large."""

    MEAN = "mean"
    """The mean difference is a larger loss than allowed."""
    SHOWN = "shown"
    """The whole 95 % interval is a larger loss than allowed: chance alone does not explain it."""
    EXCLUDED = "excluded"
    """Part of the 95 % interval is a larger loss than allowed: such a loss cannot be ruled out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Thresholds of a gate, all in 0..1. None means no check.

    ``max_regression`` is the maximum loss of the mean score.
    """

    min_score: float | None = None
    min_success: float | None = None
    min_lower_bound: float | None = None
    max_not_judged: float | None = None
    max_regression: float | None = None
    rule: RegressionRule = RegressionRule.MEAN
    allow_missing_tasks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Result of one check. ``reason`` is a complete sentence."""

    name: str
    state: GateState
    wanted: str
    found: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """All checks of one agent, named ``agent`` or ``agent@run``."""

    agent: str
    checks: Sequence[Check]

    @property
    def state(self) -> GateState:
        states = {check.state for check in self.checks}
        if GateState.FAILED in states:
            return GateState.FAILED
        return GateState.OPEN if GateState.OPEN in states else GateState.PASSED


def gate(agent: str, summary: Json, thresholds: Thresholds, *, comparison: Json | None = None) -> Gate:
    """Check a summary against the thresholds.

    ``summary`` comes from ``figures.full_summary`` and has at least one answer. ``comparison`` is one comparison of
    ``paired_comparison.comparison_json`` from the baseline to this agent.
    """
    statistics = summary["statistics"]
    checks = list(_completeness_checks(summary, thresholds.max_not_judged))
    if thresholds.min_score is not None:
        checks.append(_minimum_check("score", statistics["score"], thresholds.min_score))
    if thresholds.min_success is not None:
        checks.append(_minimum_check("success rate", statistics["success"], thresholds.min_success))
    if thresholds.min_lower_bound is not None:
        checks.append(
            _lower_bound_check(statistics["score"], thresholds.min_lower_bound, warnings=statistics["warnings"])
        )
    if thresholds.max_regression is not None and comparison is not None:
        checks += _baseline_checks(comparison, thresholds)
    return Gate(agent=agent, checks=tuple(checks))


def _completeness_checks(summary: Json, allowed: float | None) -> Iterable[Check]:
    not_judged, answers = summary["statistics"]["not_judged"], summary["statistics"]["answers"]
    count = f"{not_judged['answers']} of {answers} ({not_judged['share']:.1%})"
    if allowed is None:
        state = GateState.OPEN if not_judged["answers"] else GateState.PASSED
        reason = (
            f"{not_judged['answers']} of {answers} answers were not judged"
            if not_judged["answers"]
            else "all answers were judged"
        )
        yield Check(name="judged", state=state, wanted="every answer", found=f"{count} not judged", reason=reason)
    else:
        state = GateState.PASSED if reaches(allowed, not_judged["share"]) else GateState.FAILED
        reason = f"{not_judged['share']:.1%} of the answers were not judged, the maximum is {allowed:.1%}"
        yield Check(name="judged", state=state, wanted=f"not judged <= {allowed:.1%}", found=count, reason=reason)
    if summary.get("unfinished"):
        reason = f"{summary['unfinished']} jobs are unfinished: run the gate again when they have finished"
        yield Check(
            name="finished",
            state=GateState.OPEN,
            wanted="no unfinished job",
            found=f"{summary['unfinished']} unfinished",
            reason=reason,
        )


def _minimum_check(name: str, figure: Json, minimum: float) -> Check:
    low, high = figure["low"], figure["high"]
    value_text = _range_text(low, high)
    if reaches(low, minimum):
        state, reason = GateState.PASSED, f"the {name} is {value_text}, at least {minimum:g}"
    elif not reaches(high, minimum):
        state, reason = GateState.FAILED, f"the {name} is {value_text}, below {minimum:g}"
    else:
        state, reason = (
            GateState.OPEN,
            f"the {name} is {value_text}: unjudged answers decide whether it reaches {minimum:g}",
        )
    return Check(name=name, state=state, wanted=f">= {minimum:g}", found=value_text, reason=reason)


def _lower_bound_check(figure: Json, minimum: float, *, warnings: Sequence[str]) -> Check:
    interval = figure["interval"]
    bound_text = f"{interval['low']:.4f}"
    sentence = (
        f"the 95 % interval of the score is {_range_text(interval['low'], interval['high'])} ({interval['method']})"
    )
    if reaches(interval["low"], minimum):
        state, reason = GateState.PASSED, f"{sentence}, completely at or above {minimum:g}"
    elif figure["value"] is not None or not reaches(interval["high"], minimum):
        state, reason = GateState.FAILED, f"{sentence}, and its lower bound is below {minimum:g}"
    else:
        state, reason = (
            GateState.OPEN,
            f"{sentence}: unjudged answers decide whether its lower bound reaches {minimum:g}",
        )
    reason = "; ".join([reason, *warnings])
    return Check(name="lower bound", state=state, wanted=f">= {minimum:g}", found=bound_text, reason=reason)


def _baseline_checks(comparison: Json, thresholds: Thresholds) -> Iterable[Check]:
    missing = comparison["only_a"]
    if missing and not thresholds.allow_missing_tasks:
        reason = f"baseline tasks without an answer now: {_shortened_list(missing)}"
        found_text = f"{len(missing)} missing"
        yield Check(name="tasks", state=GateState.OPEN, wanted="all baseline tasks", found=found_text, reason=reason)
    figure, loss = comparison["score"], thresholds.max_regression or 0.0
    requirement = f"loss <= {loss:g} ({thresholds.rule})"
    if not figure["tasks"]:
        reason = "no task was judged on both sides"
        yield Check(
            name="regression", state=GateState.FAILED, wanted=requirement, found="no shared task", reason=reason
        )
        return
    state = _regression_state(figure, loss, thresholds.rule)
    reason = (
        f"the mean difference over {figure['tasks']} tasks is {_range_text(figure['low'], figure['high'], sign='+')}"
    )
    reason += _significance_text(figure)
    if figure["certain"] < figure["tasks"]:
        reason += f"; {figure['tasks'] - figure['certain']} of the tasks are open"
    if thresholds.rule is not RegressionRule.MEAN:
        reason = "; ".join([reason, *figure["warnings"]])
    found_text = _range_text(figure["low"], figure["high"], sign="+")
    yield Check(name="regression", state=state, wanted=requirement, found=found_text, reason=reason)


def _regression_state(figure: Json, loss: float, rule: RegressionRule) -> GateState:
    low, high = figure["low"], figure["high"]
    interval = figure["whatever_is_open"]
    open_tasks = figure["certain"] < figure["tasks"]
    # Without an interval (a single task, or equal differences), only the mean difference can be checked.
    if rule is RegressionRule.MEAN or interval is None:
        if reaches(low, -loss):
            return GateState.PASSED
        return GateState.OPEN if reaches(high, -loss) else GateState.FAILED
    if rule is RegressionRule.SHOWN:
        if not reaches(interval["high"], -loss):
            return GateState.FAILED
        return GateState.OPEN if open_tasks and not reaches(low, -loss) else GateState.PASSED
    if reaches(interval["low"], -loss):
        return GateState.PASSED
    return GateState.OPEN if open_tasks and reaches(high, -loss) else GateState.FAILED


def _significance_text(figure: Json) -> str:
    interval, test = figure["whatever_is_open"], figure["sign_flip"]
    text = "" if interval is None else f", 95 % {_range_text(interval['low'], interval['high'], sign='+')}"
    return text if test is None else f"{text}, p = {test['p']:.3g} ({test['method']})"


def _range_text(low: float, high: float, *, sign: str = "") -> str:
    first = formatted(low, ".4f", sign=sign)
    return first if low == high else f"{first} to {formatted(high, '.4f', sign=sign)}"


def _shortened_list(names: Sequence[str], max_shown: int = 8) -> str:
    unlisted = len(names) - max_shown
    return ", ".join(names[:max_shown]) + (f" and {unlisted} more" if unlisted > 0 else "")

"""``assay results gate``: pass or fail an agent in CI. Exit code 0: passed, 100: failed, 3: not decided.

The thresholds are on the figures of an agent and on its regression against a baseline. A check fails only if even the
best possible outcome of the unjudged answers is not enough. It passes only if the worst possible outcome is enough.
Otherwise it is ``open``, because an unjudged answer is neither right nor wrong. Figures are compared with a tolerance
of 1e-9, so a mean of 0.6, 0.8 and 1.0 reaches 0.8.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any
from xml.etree.ElementTree import Element, SubElement, tostring

import typer

from app.console.connection import URL, JsonOption, ResultsOption, UrlOption
from app.console.errors import Exit, ToolFailed, WrongUsage
from app.console.streams import print_json, print_line, stderr_console, stdout_console
from app.console.summaries import MixJudgesOption, judges_text, load_summary
from app.console.tables import plain_table
from app.features.comparison.cli_compare import SIDES, compare_sides
from app.number_format import formatted
from judges.errors import advice
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
    """Thresholds of a gate. None means no check, except that the loss against a baseline is always checked."""

    min_score: Annotated[float | None, typer.Option(min=0, max=1, help="Minimum mean score.")] = None
    min_success: Annotated[float | None, typer.Option(min=0, max=1, help="Minimum success rate.")] = None
    min_lower_bound: Annotated[
        float | None, typer.Option(min=0, max=1, help="Minimum lower bound of the score's 95 % interval.")
    ] = None
    max_not_judged: Annotated[
        float | None, typer.Option(min=0, max=1, help="Maximum fraction of unjudged answers (default: 0).")
    ] = None
    baseline: Annotated[str | None, typer.Option(help=f"Baseline to compare with: {SIDES}.")] = None
    max_regression: Annotated[
        float | None, typer.Option(min=0, max=1, help="Maximum loss of mean score against the baseline (default: 0).")
    ] = None
    regression_rule: Annotated[
        RegressionRule,
        typer.Option(
            help="What must exceed the allowed loss to fail: the mean, its whole 95 % interval, or any part of it."
        ),
    ] = RegressionRule.MEAN
    allow_missing_tasks: Annotated[
        bool, typer.Option("--allow-missing-tasks", help="Ignore baseline tasks without an answer now.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """Reports of a gate besides the table on the terminal."""

    junit: Annotated[Path | None, typer.Option(help="JUnit XML file to write.")] = None
    markdown: Annotated[
        Path | None, typer.Option(help="File to append a Markdown table to, such as $GITHUB_STEP_SUMMARY.")
    ] = None
    as_json: JsonOption = False


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


_EXIT = {GateState.PASSED: Exit.DONE, GateState.FAILED: Exit.GATE_FAILED, GateState.OPEN: Exit.INCOMPLETE}
_COLOURS = {GateState.PASSED: "green", GateState.FAILED: "bold red", GateState.OPEN: "yellow"}


def gate(
    agent: Annotated[str, typer.Option(help="Agent to check.")],
    thresholds: Thresholds,
    reports: Reports,
    run: Annotated[str | None, typer.Option(help="Only this run of the agent.")] = None,
    mix_judges: MixJudgesOption = False,
    folder: ResultsOption = None,
    url: UrlOption = URL,
) -> None:
    """Check an agent against thresholds. Exit code 0: passed, 100: failed, 3: not decided (unjudged answers)."""
    _check_usage(thresholds)
    baseline = thresholds.baseline
    summary = load_summary(agent, run=run, folder=folder, url=url, mix_judges=mix_judges)
    name = agent if run is None else f"{agent}@{run}"
    comparison = None
    if baseline is not None:
        now = name if folder is None else f"{folder}/{agent}"
        [comparison] = compare_sides(url, baseline, [now], mix_judges=mix_judges)["comparisons"]
    if summary.get("statistics") is None and thresholds.min_lower_bound is not None:
        place = "here" if folder is not None else "on the server"
        raise ToolFailed(f"--min-lower-bound needs confidence intervals: {place}, {advice('statistics')}")
    if (summary.get("bounds") or {}).get("score") is None:
        raise WrongUsage(f"{name}: no answer has been judged yet", hint="See the state of its jobs: assay admin jobs")
    _report(run_gate(name, summary, thresholds, comparison=comparison), summary, comparison, reports)


def _check_usage(thresholds: Thresholds) -> None:
    if thresholds.max_regression is not None and thresholds.baseline is None:
        raise WrongUsage(
            "--max-regression requires --baseline", hint="Give the agent, agent@run or folder to compare with."
        )
    thresholds_given = (
        thresholds.min_score, thresholds.min_success, thresholds.min_lower_bound, thresholds.max_not_judged,
        thresholds.baseline,
    )  # fmt: skip
    if all(each is None for each in thresholds_given):
        raise WrongUsage(
            "no threshold given",
            hint="Give one or more of --min-score, --min-success, --min-lower-bound, --max-not-judged, --baseline.",
        )


def _report(
    gate_result: Gate, summary: Mapping[str, Any], comparison: Mapping[str, Any] | None, reports: Reports
) -> None:
    """Write and print the reports, then exit with the exit code of the gate."""
    code = _EXIT[gate_result.state]
    if reports.junit is not None:
        _write_file(reports.junit, gate_junit(gate_result), mode="w")
    if reports.markdown is not None:
        _write_file(reports.markdown, gate_markdown(gate_result), mode="a")
    if reports.as_json:
        print_json(gate_json(gate_result, summary=summary, comparison=comparison) | {"exit_code": int(code)})
    else:
        _print_checks(gate_result)
        print_line(judges_text(summary))
    for check in gate_result.checks:
        if check.state is not GateState.PASSED:
            stderr_console().print_line(f"{check.state}: {check.name}: {check.reason}")
    raise typer.Exit(code)


def _print_checks(gate_result: Gate) -> None:
    console = stdout_console()
    table = plain_table("check", "wanted", "found", "state")
    for check in gate_result.checks:
        table.add_row(check.name, check.wanted, check.found, f"[{_COLOURS[check.state]}]{check.state}[/]")
    console.print(table)
    console.print(f"gate {gate_result.agent}: {gate_result.state}", style=_COLOURS[gate_result.state], markup=False)


def _write_file(path: Path, text: str, *, mode: str) -> None:
    """Write or append a report.

    Raises:
        ToolFailed: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ToolFailed(f"Cannot write {path}: {error.strerror}") from error


_INVALID_XML_CHARS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN_SYNTAX = re.compile(r"([\\`*_{}\[\]()#+!|~-])")
_STATE_WORDS = {GateState.PASSED: "passed", GateState.FAILED: "FAILED", GateState.OPEN: "open"}
_HEADING = {
    GateState.PASSED: "passed",
    GateState.FAILED: "failed",
    GateState.OPEN: "not decided: answers were not judged",
}


def gate_json(gate: Gate, *, summary: Mapping[str, Any], comparison: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the checks with their figures and the comparison with the baseline."""
    return {
        "agent": gate.agent,
        "gate": gate.state.value,
        "checks": [asdict(check) for check in gate.checks],
        "judges": summary.get("judges") or {},
        "statistics": summary["statistics"],
        "comparison": comparison,
    }


def gate_junit(gate: Gate) -> str:
    """Return a JUnit test suite with one test per check. An open check is an error, because it has no result."""
    states = [check.state for check in gate.checks]
    counts = {
        "tests": str(len(states)),
        "failures": str(states.count(GateState.FAILED)),
        "errors": str(states.count(GateState.OPEN)),
    }
    top = Element("testsuites", counts)
    suite = SubElement(top, "testsuite", {"name": _xml_text(f"assay results gate {gate.agent}"), **counts})
    for check in gate.checks:
        _add_test_case(suite, gate, check)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(top, encoding="unicode") + "\n"


def _add_test_case(suite: Element, gate: Gate, check: Check) -> None:
    case = SubElement(
        suite, "testcase", {"classname": _xml_text(f"assay.gate.{gate.agent}"), "name": _xml_text(check.name)}
    )
    detail = _xml_text(f"wanted {check.wanted}, found {check.found}: {check.reason}")
    if check.state is GateState.FAILED:
        SubElement(case, "failure", {"type": "threshold", "message": _xml_text(check.reason)}).text = detail
    elif check.state is GateState.OPEN:
        SubElement(case, "error", {"type": "not_judged", "message": _xml_text(check.reason)}).text = detail
    else:
        SubElement(case, "system-out").text = detail


def gate_markdown(gate: Gate) -> str:
    """Return a heading and a table for ``GITHUB_STEP_SUMMARY``."""
    rows = []
    for check in gate.checks:
        cells = map(_markdown_cell, (check.name, check.wanted, check.found))
        rows.append(f"| {' | '.join(cells)} | {_STATE_WORDS[check.state]} | {_markdown_cell(check.reason)} |")
    return "\n".join(
        [
            f"### assay results gate, {_markdown_cell(gate.agent)}: {_HEADING[gate.state]}",
            "",
            "| check | wanted | found | | reason |",
            "|---|---|---|---|---|",
            *rows,
            "",
            "",
        ]
    )


def _xml_text(text: str) -> str:
    """Replace characters that XML 1.0 does not allow."""
    return _INVALID_XML_CHARS.sub("\ufffd", text)


def _markdown_cell(text: str) -> str:
    """Escape a text for a cell of a Markdown table."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN_SYNTAX.sub(r"\\\1", plain)


def run_gate(agent: str, summary: Json, thresholds: Thresholds, *, comparison: Json | None = None) -> Gate:
    """Check a summary against the thresholds.

    ``summary`` comes from ``figures.full_summary`` and has at least one answer. ``comparison`` is one comparison of
    ``paired_comparison.comparison_json`` from the baseline to this agent.
    """
    # Without the extra ``statistics`` there are no intervals, but the means and their bounds.
    statistics = summary["statistics"]
    figures = statistics or summary["bounds"]
    checks = list(_completeness_checks(summary, thresholds.max_not_judged))
    if thresholds.min_score is not None:
        checks.append(_minimum_check("score", figures["score"], thresholds.min_score))
    if thresholds.min_success is not None:
        checks.append(_minimum_check("success rate", figures["success"], thresholds.min_success))
    if thresholds.min_lower_bound is not None:
        checks.append(
            _lower_bound_check(statistics["score"], thresholds.min_lower_bound, warnings=statistics["warnings"])
        )
    if comparison is not None:
        checks += _baseline_checks(comparison, thresholds)
    return Gate(agent=agent, checks=tuple(checks))


def _completeness_checks(summary: Json, allowed: float | None) -> Iterable[Check]:
    statistics = summary["statistics"]
    number = (statistics or summary)["not_judged"]["answers"]
    answers = statistics["answers"] if statistics else summary["num_answers"]
    share = number / answers
    count = f"{number} of {answers} ({share:.1%})"
    if allowed is None:
        state = GateState.OPEN if number else GateState.PASSED
        reason = f"{number} of {answers} answers were not judged" if number else "all answers were judged"
        yield Check(name="judged", state=state, wanted="every answer", found=f"{count} not judged", reason=reason)
    else:
        state = GateState.PASSED if reaches(allowed, share) else GateState.FAILED
        reason = f"{share:.1%} of the answers were not judged, the maximum is {allowed:.1%}"
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
    requirement = f"loss <= {loss:g} ({thresholds.regression_rule})"
    if not figure["tasks"]:
        reason = "no task was judged on both sides"
        yield Check(
            name="regression", state=GateState.FAILED, wanted=requirement, found="no shared task", reason=reason
        )
        return
    state = _regression_state(figure, loss, thresholds.regression_rule)
    reason = (
        f"the mean difference over {figure['tasks']} tasks is {_range_text(figure['low'], figure['high'], sign='+')}"
    )
    reason += _significance_text(figure)
    if figure["certain"] < figure["tasks"]:
        reason += f"; {figure['tasks'] - figure['certain']} of the tasks are open"
    if thresholds.regression_rule is not RegressionRule.MEAN:
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


def _shortened_list(names: Sequence[str]) -> str:
    unlisted = len(names) - 8
    return ", ".join(names[:8]) + (f" and {unlisted} more" if unlisted > 0 else "")

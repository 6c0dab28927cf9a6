"""``assay results gate``: pass or fail an agent in CI. Exit code 0: passed, 100: failed, 3: not decided."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
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
from app.features.comparison.gate import Check, Gate, GateState, RegressionRule, Thresholds
from app.features.comparison.gate import gate as run_gate
from judges.errors import advice

_EXIT = {GateState.PASSED: Exit.DONE, GateState.FAILED: Exit.GATE_FAILED, GateState.OPEN: Exit.INCOMPLETE}
_COLOURS = {GateState.PASSED: "green", GateState.FAILED: "bold red", GateState.OPEN: "yellow"}


def gate(
    agent: Annotated[str, typer.Option(help="Agent to check.")],
    run: Annotated[str | None, typer.Option(help="Only this run of the agent.")] = None,
    min_score: Annotated[float | None, typer.Option(min=0, max=1, help="Minimum mean score.")] = None,
    min_success: Annotated[float | None, typer.Option(min=0, max=1, help="Minimum success rate.")] = None,
    min_lower_bound: Annotated[
        float | None, typer.Option(min=0, max=1, help="Minimum lower bound of the score's 95 % interval.")
    ] = None,
    max_not_judged: Annotated[
        float | None, typer.Option(min=0, max=1, help="Maximum fraction of unjudged answers (default: 0).")
    ] = None,
    baseline: Annotated[str | None, typer.Option(help=f"Baseline to compare with: {SIDES}.")] = None,
    max_regression: Annotated[
        float | None, typer.Option(min=0, max=1, help="Maximum loss of mean score against the baseline (default: 0).")
    ] = None,
    regression_rule: Annotated[
        RegressionRule,
        typer.Option(
            help="What must exceed the allowed loss to fail: the mean, its whole 95 % interval, or any part of it."
        ),
    ] = RegressionRule.MEAN,
    allow_missing_tasks: Annotated[
        bool, typer.Option("--allow-missing-tasks", help="Ignore baseline tasks without an answer now.")
    ] = False,
    mix_judges: MixJudgesOption = False,
    junit: Annotated[Path | None, typer.Option(help="JUnit XML file to write.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="File to append a Markdown table to, such as $GITHUB_STEP_SUMMARY.")
    ] = None,
    folder: ResultsOption = None,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """Check an agent against thresholds. Exit code 0: passed, 100: failed, 3: not decided (unjudged answers)."""
    thresholds = Thresholds(
        min_score=min_score,
        min_success=min_success,
        min_lower_bound=min_lower_bound,
        max_not_judged=max_not_judged,
        max_regression=None if baseline is None else max_regression or 0.0,
        rule=regression_rule,
        allow_missing_tasks=allow_missing_tasks,
    )
    _check_usage(thresholds, baseline=baseline, max_regression=max_regression)
    summary = load_summary(agent, run=run, folder=folder, url=url, mix_judges=mix_judges)
    name = agent if run is None else f"{agent}@{run}"
    comparison = None
    if baseline is not None:
        now = name if folder is None else f"{folder}/{agent}"
        [comparison] = compare_sides(url, baseline, [now], mix_judges=mix_judges)["comparisons"]
    if summary.get("statistics") is None and summary.get("avg_score") is not None:
        place = "here" if folder is not None else "on the server"
        raise ToolFailed(f"a gate needs confidence intervals: {place}, {advice('statistics')}")
    if summary.get("statistics") is None:
        raise WrongUsage(f"{name}: no answer has been judged yet", hint="See the state of its jobs: assay admin jobs")
    _report(
        run_gate(name, summary, thresholds, comparison=comparison),
        summary, comparison, junit=junit, markdown=markdown, as_json=as_json,
    )  # fmt: skip


def _check_usage(thresholds: Thresholds, *, baseline: str | None, max_regression: float | None) -> None:
    if max_regression is not None and baseline is None:
        raise WrongUsage(
            "--max-regression requires --baseline", hint="Give the agent, agent@run or folder to compare with."
        )
    thresholds_given = (
        thresholds.min_score, thresholds.min_success, thresholds.min_lower_bound, thresholds.max_not_judged, baseline,
    )  # fmt: skip
    if all(each is None for each in thresholds_given):
        raise WrongUsage(
            "no threshold given",
            hint="Give one or more of --min-score, --min-success, --min-lower-bound, --max-not-judged, --baseline.",
        )


def _report(
    gate_result: Gate,
    summary: Mapping[str, Any],
    comparison: Mapping[str, Any] | None,
    *,
    junit: Path | None,
    markdown: Path | None,
    as_json: bool,
) -> None:
    """Write and print the reports, then exit with the exit code of the gate."""
    code = _EXIT[gate_result.state]
    if junit is not None:
        _write_file(junit, gate_junit(gate_result), mode="w")
    if markdown is not None:
        _write_file(markdown, gate_markdown(gate_result), mode="a")
    if as_json:
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

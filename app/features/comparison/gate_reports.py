"""Reports of a gate: JSON, JUnit XML and Markdown. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from app.features.comparison.gate import Check, Gate, State

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN_SYNTAX = re.compile(r"([\\`*_{}\[\]()#+!|~-])")
_WORDS = {State.PASSED: "passed", State.FAILED: "FAILED", State.OPEN: "open"}
_HEADING = {State.PASSED: "passed", State.FAILED: "failed", State.OPEN: "not decided: answers were not judged"}


def gate_json(gate: Gate, *, summary: Mapping[str, Any], comparison: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the checks with their figures and the comparison with the baseline."""
    return {
        "agent": gate.agent,
        "gate": gate.state.value,
        "checks": [
            {"name": one.name, "state": one.state.value, "wanted": one.wanted, "found": one.found, "why": one.why}
            for one in gate.checks
        ],
        "statistics": summary["statistics"],
        "comparison": comparison,
    }


def gate_junit(gate: Gate) -> str:
    """Return a JUnit test suite with one test per check. An open check is an error, because it has no result."""
    states = [check.state for check in gate.checks]
    counts = {
        "tests": str(len(states)),
        "failures": str(states.count(State.FAILED)),
        "errors": str(states.count(State.OPEN)),
    }
    top = Element("testsuites", counts)
    suite = SubElement(top, "testsuite", {"name": _xml(f"assay gate {gate.agent}"), **counts})
    for check in gate.checks:
        _add(suite, gate, check)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(top, encoding="unicode") + "\n"


def _add(suite: Element, gate: Gate, check: Check) -> None:
    case = SubElement(suite, "testcase", {"classname": _xml(f"assay.gate.{gate.agent}"), "name": _xml(check.name)})
    detail = _xml(f"wanted {check.wanted}, found {check.found}: {check.why}")
    if check.state is State.FAILED:
        SubElement(case, "failure", {"type": "threshold", "message": _xml(check.why)}).text = detail
    elif check.state is State.OPEN:
        SubElement(case, "error", {"type": "not_judged", "message": _xml(check.why)}).text = detail
    else:
        SubElement(case, "system-out").text = detail


def gate_markdown(gate: Gate) -> str:
    """Return a heading and a table for ``GITHUB_STEP_SUMMARY``."""
    rows = [
        f"| {_md(check.name)} | {_md(check.wanted)} | {_md(check.found)} | {_WORDS[check.state]} | {_md(check.why)} |"
        for check in gate.checks
    ]
    return "\n".join(
        [
            f"### assay gate, {_md(gate.agent)}: {_HEADING[gate.state]}",
            "",
            "| check | wanted | found | | why |",
            "|---|---|---|---|---|",
            *rows,
            "",
            "",
        ]
    )


def _xml(text: str) -> str:
    """Replace characters that XML 1.0 does not allow."""
    return _NOT_IN_XML.sub("\ufffd", text)


def _md(text: str) -> str:
    """Escape a text for a cell of a Markdown table."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN_SYNTAX.sub(r"\\\1", plain)

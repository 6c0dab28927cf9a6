from __future__ import annotations

from typing import Any

from rich.console import Console

from app.features.suites.cli_mm_mind2web import tilde_table
from app.features.suites.cli_suite_run import not_judged_lines
from judges.suites.multimodal.readings import Reading
from judges.suites.multimodal.scoring import report


def metrics(*unknown: str) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [
        {
            "task_id": f"t{n}",
            "website": "w",
            "domain": "d",
            "status": "scored",
            "element_acc": n % 2,
            "f1": dict.fromkeys(map(str, Reading), 1.0),
        }
        for n in range(4)
    ]
    steps += [{"task_id": one, "website": "w", "domain": "d", "status": "not_judged"} for one in unknown]
    named = [{"id": f"{one}:0", "reason": "llm_unavailable", "detail": "no reply"} for one in unknown]
    return {
        "suite": "mm-mind2web",
        "model": "openai/m",
        "answers": None,
        "splits": ["test_website"],
        "tokens": "set",
        "n_steps": len(steps),
        **report(steps, reading=Reading.SET, seed=0),
        "not_judged": {"count": len(unknown), "by_reason": {"llm_unavailable": len(unknown)}, "steps": named},
        "unknown_ids": [f"x:{n}" for n in range(12)] if unknown else [],
    }


def printed(table: Any) -> str:
    console = Console(width=120, record=True)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_steps_not_judged_show_as_ranges():
    text = printed(tilde_table(metrics("t8")))
    assert "40.0 .. 60.0" in text


def test_steps_not_judged_and_unknown_answers_are_named():
    lines = list(not_judged_lines(metrics("t8")))
    assert lines[0].startswith("1 steps were not judged (1 llm_unavailable)")
    assert "t8:0  llm_unavailable: no reply" in lines[1]
    assert lines[-1].endswith("and 2 more: these answers are ignored")
    assert list(not_judged_lines(metrics())) == []

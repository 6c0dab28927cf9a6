"""A project folder with results of one agent for tests of the report: every kind of check, and hostile text."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

from PIL import Image

from mind2web2 import CacheFileSys
from tests.compat.test_submission import write

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
FERRY, MUSEUM, PAPER = "https://ferry.example/times", "https://museum.example/visit", "https://press.example/paper.pdf"
ANSWER = f"""# Plan for the day

The ferry leaves at **8:40** and arrives at 9:25 ([timetable]({FERRY})).

| leg | time |
|---|---|
| ferry | 45 min |

- The museum opens at 10:00: {MUSEUM}
- [not a link](javascript:alert(1)) {HOSTILE}
"""


def node(id: str, status: str, *children: dict[str, Any], **more: Any) -> dict[str, Any]:
    score = {"passed": 1.0, "partial": 0.5}.get(status, 0.0)
    fields = {"id": id, "desc": id.replace("_", " "), "critical": False, "score": score, "status": status}
    return {**fields, "strategy": "parallel", "children": list(children), "evidence": None, **more}


def check(url: str | None, passed: bool, *votes: bool, **more: Any) -> dict[str, Any]:
    reasoning = f"The page says {'the same' if passed else 'that the first ferry leaves at 9:10'}."
    return {"url": url, "passed": passed, "votes": list(votes), "reasoning": reasoning, **more}


def verified(claim: str, *checks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"claim": claim, "sources": [one["url"] for one in checks if one["url"]], "checks": list(checks), **more}


def result(text: str) -> dict[str, Any]:
    """Return a result with failed, unjudged, skipped and passed checks."""
    unread = {"url": "https://walled.example/", "passed": False, "votes": [], "reasoning": None, "note": "no page"}
    tree = node(
        "root", "partial",
        node("ferry", "partial",
             node("departs", "failed", critical=True,
                  evidence=verified("The ferry leaves at 8:40.", check(FERRY, False, False, True, False))),
             node("fares", "failed", evidence=verified(HOSTILE, check("javascript:alert(1)", False, False))),
             node("crossing", "skipped", evidence=verified("It takes 45 min.", skipped_because="departs")),
             strategy="sequential"),
        node("museum", "partial",
             node("opens", "passed", evidence=verified("It opens at 10:00.", check(MUSEUM, True, True, True))),
             node("closes", "failed", outcome="not_judged", reason="capture_blocked",
                  evidence=verified("It closes at 18:00.", unread)),
             node("review", "passed", evidence=verified("The press likes it.", check(PAPER, True, True, True))),
             node("dates_given", "passed", outcome="passed"),
             node("prices_given", "failed", outcome="failed", reason="check_false"),
             node("calm", "passed", evidence=verified("The day is calm.", check(None, True, True, True)))),
    )  # fmt: skip
    rejection = {"check": "fares", "url": FERRY, "reason": "refusal"}
    extraction = {"ferry_times": {"departs": "8:40", "note": HOSTILE}}
    return {
        "agent_name": "me",
        "answer_name": "answer_1.md",
        "final_score": 0.5,
        "score": {"value": None, "low": 0.5, "high": 0.7},
        "status": "incomplete",
        "judge_model": "gpt-6-luna",
        "judge": {"model": "gpt-6-luna", "reasoning_effort": "max", "temperature": None},
        "judge_usage": {"served_models": {"luna-1": 9}, "rejections": [rejection]},
        "answer_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "eval_breakdown": [{"info": [extraction], "verification_tree": tree}],
    }


def picture(height: int) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (1100, height), "white").save(made, "JPEG")
    return made.getvalue()


def add_answer(root: Path, task: str, run: int, body: dict[str, Any] | None, text: str = ANSWER) -> None:
    folder = root / "eval_results" / "me" / task / f"answer_{run}"
    write(folder / f"answer_{run}.md", text)
    if body is not None:
        write(folder / "results" / f"20261101_120000_answer_{run}.md.json", json.dumps(body))


def write_project(root: Path, tasks: int = 3) -> Path:
    """Write results and page caches of the agent ``me``. Return the folder."""
    for number in range(tasks):
        task = f"task_{number}"
        add_answer(root, task, 1, result(ANSWER))
        whole = result(ANSWER) | {"final_score": 1.0, "status": "complete", "score": None, "judge_usage": None}
        whole["eval_breakdown"] = [{"info": [], "verification_tree": node("root", "passed", node("said", "passed"))}]
        add_answer(root, task, 2, whole)
        cache = CacheFileSys(root / "cache" / "me" / task)
        cache.put_web(FERRY, "First ferry 9:10", picture(4000))
        cache.put_web(MUSEUM, "Open from 10:00", picture(900))
        cache.put_pdf(PAPER, b"%PDF-1.4")
        cache.save()
    add_answer(root, "task_0", 3, None)
    write(
        root / "eval_results" / "me" / "task_0" / "answer_3" / "failed.json",
        json.dumps({"error": f"KeyError {HOSTILE}"}),
    )
    return root

from __future__ import annotations

from typing import Any

from app.console.not_judged import not_judged_lines
from judges.agent_figures import summary_fields


def page(url: str, outcome: str, detail: str = "") -> dict[str, Any]:
    return {"url": url, "outcome": outcome, "detail": detail, "gone": False}


def denied(path: str, port: int = 8490) -> dict[str, Any]:
    detail = f"port {port} is not allowed (ASSAY_EGRESS_ALLOW=127.0.0.1:{port} would allow it)"
    return page(f"http://127.0.0.1:{port}{path}", "egress_denied", detail)


def result(*settled: tuple[str, str, list[str]], pages: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    """Return a result with a leaf per (outcome, reason, sources)."""
    leaves = [
        {"id": f"leaf{n}", "outcome": outcome, "reason": reason, "sources": sources, "children": []}
        for n, (outcome, reason, sources) in enumerate(settled)
    ]
    return {"eval_breakdown": [{"verification_tree": {"id": "root", "children": leaves}}], "pages": list(pages)}


def test_denied_pages_are_counted_once_per_entry_that_would_allow_them() -> None:
    pages = tuple(map(denied, ("/a", "/b", "/c")))
    urls = [each["url"] for each in pages]
    first = result(*(("not_judged", "egress_denied", [url]) for url in urls), pages=pages)
    second = result(("not_judged", "egress_denied", urls[:2]), pages=pages)

    assert not_judged_lines([first, second], again="Again.") == [
        "not judged: 4 claims",
        "  3 pages denied: 127.0.0.1:8490 is not in ASSAY_EGRESS_ALLOW (port 8490 is not allowed)",
        "    Add 127.0.0.1:8490 to ASSAY_EGRESS_ALLOW.",
        "Again.",
    ]


def test_each_cause_has_its_remedy_and_the_most_frequent_is_first() -> None:
    wall, down = page("https://a.test/", "login_wall"), page("https://b.test/", "connect_error", "ERR_FAILED")
    lines = not_judged_lines(
        [
            result(
                ("not_judged", "capture_blocked", [wall["url"]]),
                ("not_judged", "capture_failed", [down["url"]]),
                ("not_judged", "llm_unavailable", ["https://c.test/"]),
                ("not_judged", "llm_unavailable", []),
                pages=(wall, down, page("https://c.test/", "ok")),
            )
        ],
        again="Again.",
    )

    assert lines[:3] == [
        "not judged: 4 claims",
        "  2 claims because the model was unreachable, overloaded or failing",
        "    Wait until its provider works again.",
    ]
    assert "  1 page behind a sign-in form" in lines
    assert "  1 page not captured: connect error (ERR_FAILED)" in lines
    assert sum("assay pages import" in line for line in lines) == 2


def test_summary_fields_give_the_same_report() -> None:
    wall = page("https://a.test/", "login_wall")
    whole = result(
        ("not_judged", "capture_blocked", [wall["url"]]),
        ("not_judged", "llm_unavailable", []),
        ("passed", "", [wall["url"]]),
        pages=(wall, page("https://c.test/", "ok")),
    )
    report = not_judged_lines([whole], again="Again.")
    assert report[0] == "not judged: 2 claims"
    assert not_judged_lines([summary_fields(whole)], again="Again.") == report

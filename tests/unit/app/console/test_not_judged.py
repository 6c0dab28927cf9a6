from __future__ import annotations

from typing import Any

from app.agent_summary import summary_fields
from app.console.not_judged import MAX_GROUPS, not_judged_lines


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


def test_nothing_is_reported_if_every_claim_was_judged() -> None:
    assert not_judged_lines([result(("passed", "", []), ("failed", "refuted", [])), None], again="Again.") == []


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


def test_failed_extraction_names_its_cause_and_a_command() -> None:
    unread = result(("not_judged", "extraction_failed", []))
    unread["eval_breakdown"][0]["verification_tree"]["children"][0]["reasoning"] = "extraction failed: openai: 503 busy"

    assert not_judged_lines([unread], again="Again.")[1:3] == [
        "  1 claim because extraction failed: openai: 503 busy",
        "    Check the model: assay admin doctor --model MODEL",
    ]


def test_page_that_no_setting_allows_names_no_setting() -> None:
    forbidden = page("http://a.test/", "egress_denied", "redirect to file:///x: not a web page; no setting allows it")
    lines = not_judged_lines(
        [result(("not_judged", "egress_denied", [forbidden["url"]]), pages=(forbidden,))], again="Again."
    )

    assert "ASSAY_EGRESS_ALLOW" not in "\n".join(lines)


def test_many_causes_are_cut() -> None:
    pages = tuple(denied("/", port) for port in range(9000, 9000 + MAX_GROUPS + 2))
    lines = not_judged_lines(
        [result(*(("not_judged", "egress_denied", [each["url"]]) for each in pages), pages=pages)], again="Again."
    )

    assert lines[-2:] == ["  and 2 other causes", "Again."]
    assert len(lines) == 1 + 2 * MAX_GROUPS + 2


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

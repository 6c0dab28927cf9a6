"""The static report: what it contains, what it refuses to contain, and its command."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lxml.html
import pytest
from PIL import Image

from mind2web2.cli import main
from mind2web2.report import write_report
from tests.compat.reported import FERRY, MUSEUM, add_answer, write_project
from tests.fakes.judged import FAILED, judged_fields, leaf, rubric_of
from tests.fakes.pages import jpeg


def page_of(root: Path, **options: Any) -> str:
    return write_report("me", root / "eval_results", root / "cache", **options).read_text("utf-8")


def stored_thumbnails(page: str) -> list[str]:
    [stored] = re.findall(r'<script type="application/json" id="thumbnails"[^>]*>(.*?)</script>', page)
    found: list[str] = json.loads(stored)
    return found


def position(page: str, text: str) -> int:
    assert text in page
    return page.index(text)


def test_report_is_one_file_that_loads_nothing(tmp_path: Path):
    page = page_of(write_project(tmp_path, 1))
    assert (tmp_path / "eval_results" / "me" / "report.html").read_text("utf-8") == page
    [nonce] = set(re.findall(r'nonce="([^"]+)"', page))
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert f"script-src 'nonce-{nonce}'" in policy
    elements = list(lxml.html.document_fromstring(page).iter())
    assert not {"link", "iframe", "object", "embed", "base"} & {str(element.tag) for element in elements}
    attributes = {name for element in elements for name in element.attrib}
    assert not [name for name in attributes if name in {"src", "srcset", "action", "style"} or name.startswith("on")]
    assert "@import" not in page
    assert nonce not in page_of(tmp_path)


def test_text_of_answers_claims_and_results_is_escaped(tmp_path: Path):
    page = page_of(write_project(tmp_path, 1))
    assert page.count("<script") == 2
    assert "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;" in page
    assert "<img src=x" not in page


def test_only_http_urls_become_links(tmp_path: Path):
    links = set(re.findall(r'href="([^"#][^"]*)"', page_of(write_project(tmp_path, 1))))
    assert FERRY in links
    assert {link.partition(":")[0] for link in links} == {"https"}


def test_failed_checks_come_first_with_claim_page_votes_and_reasoning(tmp_path: Path):
    page = page_of(write_project(tmp_path, 1))
    card = page[position(page, 'class="check failed"') : position(page, 'class="check not_judged"')]
    for text in (
        "The ferry leaves at 8:40.",
        FERRY,
        "not supported</span>",
        "the first ferry leaves at 9:10",
        "critical",
    ):
        assert text in card
    order = [position(page, f'class="check {outcome}"') for outcome in ("failed", "not_judged", "skipped", "passed")]
    assert order == sorted(order)
    assert "Skipped because of <code>departs</code>" in page
    assert "page not available" in page
    assert position(page, "Requests that the provider rejected") < position(page, "ferry_times")


@pytest.mark.parametrize(
    "body",
    [
        {"final_score": float("nan"), "score": [1], "eval_breakdown": [{"verification_tree": {"outcome": ["x"]}}]},
        {"final_score": 10**400, "score": {"low": float("nan"), "high": 10**400}, "judge": "x", "judge_usage": [1]},
        {"eval_breakdown": [1, {"info": [None], "verification_tree": [1]}], "judge_usage": {"rejections": [None]}},
    ],
)
def test_malformed_result_is_shown_as_far_as_it_can_be_read(body: dict[str, Any], tmp_path: Path):
    add_answer(tmp_path, "t", 1, body)
    assert "no result" in page_of(tmp_path)


def test_penalty_that_applies_is_a_failed_check_and_an_avoided_one_a_passed_check(tmp_path: Path):
    leaves = [leaf("fact", weight=4), leaf("mistake", weight=-2, desc="It errs"), leaf("other", FAILED, weight=-1)]
    add_answer(tmp_path, "t", 1, judged_fields(rubric_of(*leaves)))
    page = page_of(tmp_path)
    card = page[position(page, 'class="check failed"') :].partition("</li>")[0]
    assert '<span class="tag">penalty</span>' in card
    assert "It errs" in card
    assert "Decided by code" in card
    assert "the claim" not in card
    assert "not supported" not in page
    assert "Passed and skipped checks (2)" in page


def test_thumbnails_show_the_top_of_each_cited_page_once(tmp_path: Path):
    thumbnails = stored_thumbnails(page_of(write_project(tmp_path, 2)))
    pictures = [one.removeprefix("data:image/jpeg;base64,") for one in thumbnails]
    sizes = [Image.open(io.BytesIO(base64.b64decode(picture, validate=True))).size for picture in pictures]
    assert sizes == [(480, 720), (480, 392)]  # failed checks first; both tasks have the same pages
    assert stored_thumbnails(write_report("me", tmp_path / "eval_results").read_text("utf-8")) == []


def test_captures_are_shown_if_the_page_cache_lacks_them(tmp_path: Path):
    write_project(tmp_path, 1)
    [path] = (tmp_path / "eval_results").glob("me/*/answer_1/results/*.json")
    body = json.loads(path.read_bytes())
    body["pages"] = [
        {"url": FERRY, "outcome": "ok", "bodies": {"text": "1" * 64, "screenshot-0": "2" * 64}},
        {"url": MUSEUM, "outcome": "http_error", "bodies": {}},
    ]
    path.write_text(json.dumps(body))
    wanted: list[str] = []

    def stored(digests: Sequence[str]) -> dict[str, bytes]:
        wanted.extend(digests)
        return {"2" * 64: jpeg()}

    page = write_report("me", tmp_path / "eval_results", stored_bodies=stored).read_text("utf-8")
    assert wanted == ["2" * 64]
    assert len(stored_thumbnails(page)) == 1
    assert "not captured: http error" in page


def test_command_writes_the_selected_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.chdir(write_project(tmp_path, 3))
    assert main(["report", "me"]) == 0
    assert capsys.readouterr().out == "report: eval_results/me/report.html\n"
    assert main(["report", "me", "--task", "task_0", "--task", "task_2", "--output", "out/one.html"]) == 0
    page = Path("out/one.html").read_text("utf-8")
    assert ("task_0" in page, "task_1" in page, "task_2" in page) == (True, False, True)
    assert stored_thumbnails(page)
    assert main(["report", "me", "--task", "task_9"]) == 1
    assert main(["report", "you"]) == 1
    assert "eval_results/you" in capsys.readouterr().err

"""``assay check`` on stored pages, without a browser: output, exit codes and the estimate."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from app.cli.program import run
from app.demo.expected import page_texts
from app.engine.text_judging import TextCapturer
from app.features.check.report import document_schema
from cache.blobs import BlobStore
from cache.capture_index import FolderIndex
from cache.pages import PageCache
from tests.fakes.loop_thread import entered_in_thread
from tests.standin.call import Call
from tests.standin.faults import Fault
from tests.standin.llm import StandInLLM

MODEL = "openai/gpt-6-luna"
SITE = "http://127.0.0.1:8765"
REPORT = f"""# Karrow Bay

The Velm Institute was founded in 1931 [1]. The tide museum is closed on Mondays [2].
An adult ticket costs 990 crowns [3].

References:
[1] {SITE}/institute/history
[2] {SITE}/museum
[3] {SITE}/museum/tickets
"""


async def store_pages(data: Path) -> None:
    index = await FolderIndex.open(data / "captures")
    pages = PageCache(TextCapturer(page_texts()), BlobStore.open((data / "blobs").as_uri()), index)
    for url in page_texts():
        await pages.get(url)
    await pages.aclose()


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A report in a folder whose data folder has its pages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASSAY_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    (tmp_path / "data").mkdir()
    asyncio.run(store_pages(tmp_path / "data"))
    path = tmp_path / "report.md"
    path.write_text(REPORT, "utf-8")
    return path


def check(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as stopped:
        run(["check", *map(str, arguments)])
    return int(stopped.value.code or 0)


def test_json_matches_the_schema_and_names_the_baseline(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(report, "--model", "lexical", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(document_schema()).validate(document)
    assert document["baseline"] is True
    assert document["model"] == "lexical"
    assert document["report"]["name"] == "report.md"
    assert document["figures"]["citation_precision_liu2023"]["count"] == 2


def test_minimum_precision_sets_the_exit_code(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(report, "--model", "lexical", "--min-precision", "0.6") == 0
    assert check(report, "--model", "lexical", "--min-precision", "0.9") == 1
    assert "citation precision 0.6667 is below 0.9" in capsys.readouterr().err


def test_unknown_precision_is_neither_met_nor_missed(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report.write_text("The Velm Institute was founded in 1931.\n", "utf-8")
    assert check(report, "--model", "lexical", "--min-precision", "0.9") == 3
    captured = capsys.readouterr()
    assert "The report has no citations." in captured.out
    assert "no citation was judged" in captured.err


def answered_except(lost: str) -> Callable[[Call], Fault | None]:
    """Return a refusal for the claims on pages with ``lost`` in a claim. Other claims are still asked."""
    return lambda call: Fault(refusal="I cannot help") if lost in call.block("claims") else None


def split(call: Call) -> dict[str, Any]:
    lines = re.findall(r"^(\d+)\. (.*)$", call.block("statements"), re.MULTILINE)
    return {
        "statements": [{"number": int(number), "claims": [{"claim": line, "quotes": []}]} for number, line in lines]
    }


def audit(call: Call) -> dict[str, Any]:
    """Support the claims that have no price."""
    lines = re.findall(r"^(\d+)\. (.*)$", call.block("claims"), re.MULTILINE)
    verdicts = {number: "not_supported" if "crowns" in claim else "supported" for number, claim in lines}
    return {
        "claims": [
            {"number": int(number), "verdict": verdict, "reasoning": "r", "quotes": []}
            for number, verdict in verdicts.items()
        ]
    }


def test_claims_without_a_reply_do_not_miss_the_precision(
    report: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of two judged citations is supported; the third, without a reply, decides whether 2/3 are."""
    model = StandInLLM(extractions={"SplitReply": split, "PageAudit": audit}, fault_for=answered_except("Mondays"))
    with entered_in_thread(model):
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        codes = [check(report, "--model", MODEL, "--min-precision", wanted) for wanted in ("0.5", "0.6", "0.7")]
    assert codes == [3, 3, 1]
    errors = capsys.readouterr().err
    assert (
        "citation precision 0.5000 is below 0.6, but with the claims that were not judged it can be up to 0.6667"
        in errors
    )
    assert "citation precision 0.5000 is below 0.7\n" in errors


def supply(folder: Path, **texts: str) -> Path:
    """Write texts of pages of the site, by the last part of their path."""
    path = folder / "pages.jsonl"
    pages = {"history": "institute/history", "museum": "museum", "tickets": "museum/tickets"}
    lines = [json.dumps({"url": f"{SITE}/{pages[name]}", "title": name, "text": text}) for name, text in texts.items()]
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_supplied_pages_replace_the_stored_ones_in_this_check_only(
    report: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = supply(
        tmp_path, history="The Velm Institute was founded in 1874.", tickets="An adult ticket costs 990 crowns."
    )
    runs = []
    for sources in (["--sources", str(pages)], []):
        assert check(report, "--model", "lexical", "--json", *sources) == 0
        runs.append(json.loads(capsys.readouterr().out))
    supplied, stored = ([one["outcome"] for one in document["statements"]] for document in runs)
    assert (supplied, stored) == (
        ["not_supported", "supported", "supported"],
        ["supported", "supported", "not_supported"],
    )
    pages_of = [[source["page"]["source"] for source in document["sources"]] for document in runs]
    assert pages_of == [["supplied", "web", "supplied"], ["web", "web", "web"]]
    assert runs[0]["sources"][0]["page"]["title"] == "history"
    quote = runs[0]["statements"][2]["claims"][0]["verdicts"][0]["quotes"][0]
    assert quote["text"] == "An adult ticket costs 990 crowns"


def test_page_that_is_neither_supplied_nor_stored_is_not_opened(
    report: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report.write_text(REPORT.replace("/museum/tickets", "/museum/prices"), "utf-8")
    pages = supply(tmp_path, history="404 not found")
    assert check(report, "--model", "lexical", "--json", "--sources", pages) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(one["state"], one["reason"]) for one in document["sources"]] == [
        ("unreadable", "soft_404"),
        ("readable", None),
        ("unreadable", "not_stored"),
    ]


def test_dry_run_counts_supplied_pages(report: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokens = []
    for text in ("short", "long " * 20_000):
        pages = supply(tmp_path, history=text)
        assert check(report, "--dry-run", "--json", "--model", "openai/gpt-6-luna", "--sources", pages) == 0
        tokens.append(json.loads(capsys.readouterr().out)["input_tokens"])
    assert tokens[1] - tokens[0] > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report.md", "--sources", "none.jsonl"], "Cannot read --sources none.jsonl: No such file"),
        (["report.md", "--sources", "."], "Cannot read --sources .: Is a directory"),
        (["report.md", "--sources", "report.md"], "--sources report.md: line 1: is not JSON"),
        (["--sources", "report.md"], "--sources needs a FILE or URL"),
    ],
)
def test_wrong_sources_are_refused_before_anything_is_opened(
    report: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(*arguments) == 2
    assert message in capsys.readouterr().err


def test_each_problem_names_its_url_and_what_the_page_says(
    report: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report.write_text(REPORT.replace("/museum/tickets", "/museum/prices").replace("Mondays [2].", "Mondays [2] [9]."))
    pages = supply(
        tmp_path, history="The turbine hall of the Velm Institute was built in 1874.", museum="Closed on Mondays."
    )
    assert check(report, "--model", "lexical", "--sources", pages) == 0
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    problems = printed[printed.index("line 3: not supported: The Velm Institute was founded in 1931 [1].") :]
    assert problems[1:5] == [
        "unsupported: 1931",
        f"{SITE}/institute/history: does not support it",
        'closest passage: "The turbine hall of the Velm Institute was built in 1874."',
        "it lacks: founded, 1931",
    ]
    assert f"{SITE}/museum/prices: could not be read (not stored, this run captures no pages)" in problems
    assert "[9]: mark without a source" in problems
    at = problems.index("1 page not captured: not stored (this run captures no pages)")
    assert problems[at + 1 : at + 3] == [
        f"{SITE}/museum/prices",
        "Add it to the file of --sources, or check without --sources to open it.",
    ]


def test_page_about_something_else_is_said_to_share_no_word(
    report: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = supply(tmp_path, history="Bread needs salt.", museum="Closed on Mondays.", tickets="Cheese.")
    assert check(report, "--model", "lexical", "--sources", pages) == 0
    assert capsys.readouterr().out.count("no passage of the page shares a significant word with it") == 2


def test_reasoning_of_the_baseline_has_the_words_of_the_claim(
    report: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report.write_text("The Institute operates seven turbines [1].\n\n[1]: " + f"{SITE}/institute/history\n")
    pages = supply(tmp_path, history="The Institute is old.")
    assert check(report, "--model", "lexical", "--sources", pages, "--json") == 0
    [verdict] = json.loads(capsys.readouterr().out)["statements"][0]["claims"][0]["verdicts"]
    assert verdict["reasoning"] == "The closest passage lacks operates, seven, turbines."
    assert verdict["closest"] == {
        "text": "The Institute is old.", "start": 0, "end": 21, "missing": ["operates", "seven", "turbines"]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--html", "none/out.html"], 2, "--html none/out.html: no such folder none"),
        (["--html", "."], 2, "--html .: is a folder"),
        (["--model", "nosuch/x"], 1, "unknown provider 'nosuch'"),
        (["--model", "openai/gpt-6-luna"], 1, "needs OPENAI_API_KEY"),
        (["--bind", "--html", "out.html"], 2, "--html and --min-precision need a check"),
        (["--dry-run", "--min-precision", "0.5"], 2, "--html and --min-precision need a check"),
    ],
)
def test_wrong_output_or_model_is_refused_before_the_first_page_is_opened(
    report: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(PageCache, "get", None)  # opening a page would fail with another error
    assert check(report, *arguments) == code
    assert message in capsys.readouterr().err


def test_html_is_written(report: Path, tmp_path: Path) -> None:
    assert check(report, "--model", "lexical", "--html", tmp_path / "out.html") == 0
    page = (tmp_path / "out.html").read_text("utf-8")
    assert "An adult ticket costs 990 crowns" in page


def test_dry_run_counts_without_a_key(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(report, "--dry-run", "--model", "openai/gpt-6-luna", "--json") == 0
    estimate = json.loads(capsys.readouterr().out)
    assert (estimate["statements"], estimate["citations"], estimate["pages"]) == (3, 3, 3)
    # One request divides the statements, and one judges the claims of each page.
    assert (estimate["calls"], estimate["unknown_pages"]) == (4, 0)
    assert estimate["input_tokens"] > 1_000
    assert estimate["usd"] > 0

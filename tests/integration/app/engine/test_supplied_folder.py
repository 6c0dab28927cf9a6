"""Pages that agents supply in folders beside their answers, judged by ``assay evaluate`` without a browser."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cache.capture import EvidencePolicy
from cache.errors import BrowserUnavailable
from tests.integration.app.judged_folder import ANSWER, SCRIPT, AnswerFolder, stored_result

VELLMAR, ARCHES = "https://towns.example/vellmar", "https://towns.example/arches"
YEAR = "The old bridge of Vellmar was built in 1764."
NINE = "<!doctype html><title>Arches</title><p>The old bridge of Vellmar has nine arches, as many as the new one."
INDEX = [{"url": VELLMAR, "text": YEAR}, {"url": ARCHES, "file": "arches.html", "title": "Arches"}]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AnswerFolder:
    """Return a folder on a machine without a browser."""

    async def no_browser(*_: object, **__: object) -> None:
        raise BrowserUnavailable("none is installed")

    async def opened(*_: object, **__: object) -> None:
        raise AssertionError("a page was opened")

    monkeypatch.setattr("cache.backends.patchright.BrowserCapturer.render", no_browser)
    monkeypatch.setattr("cache.backends.patchright.BrowserCapturer.capture", opened)
    monkeypatch.setattr("cache.backends.http.HttpCapturer.capture", opened)
    return AnswerFolder(tmp_path)


def supply(
    folder: AnswerFolder, k: int, index: Any, files: Mapping[str, str] | None = None, task: str = "bridge"
) -> Path:
    path = folder.root / "answers" / "otter" / task / f"answer_{k}.evidence"
    path.mkdir(parents=True, exist_ok=True)
    (path / "index.json").write_text(index if isinstance(index, str) else json.dumps(index))
    for name, content in (files or {"arches.html": NINE}).items():
        (path / name).write_text(content)
    return path


async def test_hundred_answers_with_supplied_pages_need_no_browser(folder: AnswerFolder):
    for k in range(1, 101):
        folder.write_answer("bridge", k, f"{ANSWER} This is answer {k}.")
        supply(folder, k, INDEX)
    judged = await folder.evaluate(evidence_policy=EvidencePolicy.SUPPLIED)
    assert len(judged) == 100
    for one in judged:
        result = stored_result(one)
        assert (result["score"]["value"], result["score_strict"]["value"]) == (1.0, 0.0)
        assert (result["evidence"]["captured"], result["evidence"]["supplied"]) == (0, 2)
        assert {page["source"] for page in result["pages"]} == {"supplied"}


async def test_result_is_reused_until_the_supplied_pages_or_the_policy_change(folder: AnswerFolder):
    path = supply(folder, 1, INDEX)
    assert [one.reused for one in await folder.evaluate(evidence_policy=EvidencePolicy.SUPPLIED)] == [False]
    assert [one.reused for one in await folder.evaluate(evidence_policy=EvidencePolicy.SUPPLIED)] == [True]
    (path / "arches.html").write_text("<!doctype html><p>The market opens at eight, and on Sundays at ten.")
    [changed] = await folder.evaluate(evidence_policy=EvidencePolicy.SUPPLIED)
    assert (changed.reused, stored_result(changed)["score"]["value"]) == (False, 0.5)
    [planned] = await folder.plan(folder.settings())
    assert planned.reason == "the supplied pages or their policy changed"


async def test_folder_without_a_page_is_like_none(folder: AnswerFolder):
    supply(folder, 1, [], {}).joinpath("arches.html").unlink(missing_ok=True)
    [planned] = await folder.plan(folder.settings())
    assert planned.evidence is None


@pytest.mark.parametrize(
    ("index", "files", "message"),
    [
        ("{", None, "answer_2.evidence/index.json: is not JSON"),
        ([{"file": "arches.html"}], None, "answer_2.evidence/index.json.0.url: is missing"),
        ([{"url": ARCHES, "file": "arches.pdf"}], {"arches.pdf": NINE}, "is html by its bytes, not pdf"),
        ([{"url": ARCHES, "file": "../answer_1.md"}], None, "is not a file beside index.json"),
        ([{"url": ARCHES, "file": "arches.exe"}], {"arches.exe": NINE}, "has no known suffix"),
        ([{**INDEX[1], "html": NINE}], None, "answer_2.evidence/index.json.0.file: is given beside html"),
        ([*INDEX, INDEX[0]], None, "is already given by answer_2.evidence/index.json.0"),
        (
            [INDEX[0], {"url": ARCHES, "file": "arches.pdf"}],
            {"arches.pdf": "%PDF-1.4"},
            "answer_2.evidence/index.json.1: https://towns.example/arches: damaged",
        ),
    ],
)
async def test_invalid_pages_of_one_answer_do_not_affect_the_others(
    folder: AnswerFolder, index: Any, files: Mapping[str, str] | None, message: str
):
    supply(folder, 1, INDEX)
    folder.write_answer("bridge", 2)
    supply(folder, 2, index, files)
    good, bad = await folder.evaluate(evidence_policy=EvidencePolicy.SUPPLIED)
    assert stored_result(good)["score"]["value"] == 1.0
    assert bad.error is not None and message in bad.error
    assert bad.outcome.error_code == "BAD_EVIDENCE"


async def test_link_out_of_the_folder_is_refused(folder: AnswerFolder, tmp_path: Path):
    secret = tmp_path / "secret.txt"
    secret.write_text(YEAR)
    path = supply(folder, 1, [{"url": VELLMAR, "file": "a.txt"}], {})
    (path / "arches.html").unlink(missing_ok=True)
    (path / "a.txt").symlink_to(secret)
    [bad] = await folder.evaluate(evidence_policy=EvidencePolicy.SUPPLIED)
    assert bad.error is not None and "answer_1.evidence/a.txt: is not a file" in bad.error


@pytest.mark.parametrize("in_process", [True, False])
async def test_public_script_is_judged_on_supplied_pages_too(folder: AnswerFolder, in_process: bool):
    folder.write_judge("script", SCRIPT)
    folder.write_answer("script", 1)
    supply(folder, 1, INDEX, task="script")
    supply(folder, 1, INDEX)
    judged = await folder.evaluate(evidence_policy=EvidencePolicy.SUPPLIED, in_process=in_process)
    [result] = [stored_result(one) for one in judged if one.planned.folder.task_id == "script"]
    assert (result["score"]["value"], result["score_strict"]["value"]) == (1.0, 0.0)
    assert result["evidence"]["supplied"] == 1

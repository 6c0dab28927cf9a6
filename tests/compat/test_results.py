"""Result files in the public layout: names, newest result, superseded results, evaluation date."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mind2web2 import results

OLD, NEW = "20261001_080000", "20261002_080000"


@pytest.fixture
def answer_dir(tmp_path: Path) -> Path:
    return results.answer_output_dir(tmp_path, "otter", "bridge", "answer_2.md")


def store(answer_dir: Path, stamp: str, content: str = '{"final_score": 1.0}') -> Path:
    path = answer_dir / "results" / results.result_file_name(stamp, "answer_2.md")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, "utf-8")
    return path


def test_paths_follow_the_public_layout(tmp_path: Path):
    expected = tmp_path / "otter" / "bridge" / "answer_2"
    assert results.answer_output_dir(tmp_path, "otter", "bridge", "answer_2.md") == expected
    assert results.answer_output_dir(str(tmp_path), "otter", "bridge", "answer_2") == expected
    for arguments in ((OLD, "answer_2.md"), ("answer_2.md", OLD), (OLD, "answer_2")):
        assert results.result_file_name(*arguments) == f"{OLD}_answer_2.md.json"


def test_the_result_with_the_newest_stamp_is_the_latest(answer_dir: Path):
    assert results.latest_result_file(answer_dir) is None
    newest = store(answer_dir, NEW)
    store(answer_dir, OLD)
    for name in (f"{NEW}_answer_2.md_debug.json", "zzz_answer_2.md.json", "notes.json", f"{NEW}_answer_2.md.json.tmp"):
        (newest.parent / name).write_text("{}", "utf-8")
    assert results.latest_result_file(answer_dir) == results.latest_result_file(newest.parent) == newest


def test_superseded_results_are_kept_but_are_not_the_latest(answer_dir: Path):
    paths = [store(answer_dir, OLD, '{"run": 1}'), store(answer_dir, NEW)]
    notes = answer_dir / "results" / "notes.txt"
    notes.write_text("kept", "utf-8")
    moved = results.supersede_results(answer_dir)
    superseded = answer_dir / "results" / "superseded"
    assert sorted(moved) == sorted(superseded / path.name for path in [*paths, notes])
    assert [path.name for path in (answer_dir / "results").iterdir()] == ["superseded"]
    assert results.latest_result_file(answer_dir) is None and results.load_latest_result(answer_dir) is None

    store(answer_dir, OLD, '{"run": 2}')
    results.supersede_results(answer_dir)
    runs = {json.loads(path.read_text("utf-8")).get("run") for path in superseded.glob(f"{OLD}*")}
    assert runs == {1, 2}


def test_evaluation_date_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    assert (results.SCORING_VERSION, results.EVAL_DATE_VARIABLE) == (3, "MIND2WEB2_EVAL_DATE")
    monkeypatch.delenv(results.EVAL_DATE_VARIABLE, raising=False)
    assert results.eval_date() is None
    monkeypatch.setenv(results.EVAL_DATE_VARIABLE, "2026-10-31")
    assert results.eval_date() == "2026-10-31"
    monkeypatch.setenv(results.EVAL_DATE_VARIABLE, "31 October")
    with pytest.raises(ValueError, match="MIND2WEB2_EVAL_DATE='31 October' is not a date: use YYYY-MM-DD"):
        results.eval_date()

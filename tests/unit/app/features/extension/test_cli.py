"""``assay admin extension`` writes the extension and overwrites no other files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.cli.program import run

pytestmark = pytest.mark.slow


def run_extension(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        run(["admin", "extension", *arguments])
    return int(ended.value.code or 0)


def test_extension_is_written_and_the_next_step_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run_extension("--out", str(tmp_path / "here")) == 0
    assert "chrome://extensions" in capsys.readouterr().out
    assert (tmp_path / "here" / "manifest.json").is_file()
    assert run_extension("--out", str(tmp_path / "here"), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert "worker.js" in document["files"] and document["folder"] == str(tmp_path / "here")


def test_folder_with_other_files_is_not_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "mine.txt").write_text("mine")
    assert run_extension("--out", str(tmp_path)) == 2
    assert "contains other files" in capsys.readouterr().err
    assert run_extension("--out", str(tmp_path / "mine.txt")) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]

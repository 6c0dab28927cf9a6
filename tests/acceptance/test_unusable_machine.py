"""A missing browser, a full disk and a folder that cannot be written end commands with the path and the setting."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.fakes.program import environment_for
from tests.fakes.warm_start import COLD, warm_assay

ANSWER = "## Ferry\n- Leaves: 8:40\n- Arrives: 9:25\n- Source: https://ferries.example/karrow\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "answers" / "otter" / "karrow_visit"
    folder.mkdir(parents=True)
    (folder / "answer_1.md").write_text(ANSWER)
    (tmp_path / "file").touch()
    return tmp_path


def run(home: Path, *command: str, **variables: str) -> str:
    """Run a command that fails, and return its errors."""
    ended = subprocess.run(
        command, cwd=home, env=environment_for(home, **variables), capture_output=True, text=True, timeout=240
    )
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    return " ".join(ended.stderr.split())


EVALUATE = ("evaluate", "--agent", "otter")


def test_missing_browser_names_the_setting_and_how_to_install_one(home: Path) -> None:
    errors = run(home, warm_assay(), *EVALUATE, ASSAY_BROWSER="/nonexistent/chromium", ASSAY_MODEL="lexical")

    assert "ASSAY_BROWSER=/nonexistent/chromium is not there" in errors
    assert "`patchright install chromium`" in errors


@pytest.mark.parametrize("arguments", [EVALUATE, ("serve", "--port", "0")])
def test_data_folder_that_cannot_be_written_names_it_and_the_setting(home: Path, arguments: tuple[str, ...]) -> None:
    errors = run(home, warm_assay(), *arguments, ASSAY_DATA_DIR=str(home / "file" / "data"))

    assert str(home / "file" / "data") in errors
    assert "ASSAY_DATA_DIR" in errors


def test_full_disk_names_the_file_that_does_not_fit(home: Path) -> None:
    (home / "answers/otter/karrow_visit/answer_1.md").write_text("I could not find a ferry.")
    small_files = ("sh", "-c", 'ulimit -f 8; exec "$@"', "sh")
    errors = run(home, *small_files, *COLD, *EVALUATE)

    assert "cannot write eval_results/otter/karrow_visit/answer_1/results/" in errors
    assert ".md.json: File too large" in errors
    assert "ASSAY_DATA_DIR" in errors

"""Search for an installed browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from cache.backends.browser_search import find_browser


def _program(path: Path, content: bytes = b"\x7fELF", mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_headless_shell_and_full_browser_are_found_in_the_given_folders(tmp_path: Path) -> None:
    shell = _program(tmp_path / "lib" / "chromium-headless-shell")
    full = _program(tmp_path / "bin" / "google-chrome")
    found = find_browser(folders=(tmp_path / "lib", tmp_path / "bin"))
    assert (found.shell, found.full) == (shell, full)


@pytest.mark.parametrize("missing", [True, False])
def test_explicit_browser_that_cannot_run_is_a_problem_and_not_replaced(tmp_path: Path, missing: bool) -> None:
    mine = tmp_path / "browser"
    if not missing:
        _program(mine, mode=0o644)
    _program(tmp_path / "chromium")
    found = find_browser(mine, folders=(tmp_path,))
    assert found.shell is found.full is None
    assert str(mine) in found.problem


@pytest.mark.parametrize(
    "program",
    [
        "chromium-1/chrome-linux64/chrome",
        "chromium-1/chrome-mac-arm64/Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing",
        "chromium-1/chrome-mac/Chromium.app/Contents/MacOS/Chromium",
    ],
)
def test_download_of_patchright_is_found(tmp_path: Path, program: str):
    path = tmp_path / program
    path.parent.mkdir(parents=True)
    path.write_text("ELF")
    path.chmod(0o755)
    assert find_browser(folders=(), downloads=(tmp_path,)).full == path

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
    assert found.usable


def test_first_folder_has_priority(tmp_path: Path) -> None:
    first = _program(tmp_path / "a" / "chromium")
    _program(tmp_path / "b" / "chromium")
    assert find_browser(folders=(tmp_path / "a", tmp_path / "b")).full == first


def test_newest_downloaded_browser_is_found(tmp_path: Path) -> None:
    _program(tmp_path / "chromium-1100" / "chrome-linux" / "chrome")
    newest = _program(tmp_path / "chromium-1200" / "chrome-linux" / "chrome")
    shell = _program(tmp_path / "chromium_headless_shell-1200" / "chrome-linux" / "headless_shell")
    found = find_browser(folders=(), downloads=(tmp_path,))
    assert (found.full, found.shell) == (newest, shell)


def test_explicit_browser_is_used_alone(tmp_path: Path) -> None:
    mine = _program(tmp_path / "my-chromium")
    _program(tmp_path / "chromium-headless-shell")
    found = find_browser(mine, folders=(tmp_path,))
    assert (found.full, found.shell, found.searched_paths) == (mine, None, (mine,))


def test_explicit_headless_shell_is_recognized_by_its_name(tmp_path: Path) -> None:
    shell = _program(tmp_path / "chrome-headless-shell")
    assert find_browser(shell).shell == shell


@pytest.mark.parametrize("missing", [True, False])
def test_explicit_browser_that_cannot_run_is_a_problem_and_not_replaced(tmp_path: Path, missing: bool) -> None:
    mine = tmp_path / "browser"
    if not missing:
        _program(mine, mode=0o644)
    _program(tmp_path / "chromium")
    found = find_browser(mine, folders=(tmp_path,))
    assert not found.usable
    assert str(mine) in found.problem


def test_searched_paths_are_reported_if_no_browser_is_found(tmp_path: Path) -> None:
    found = find_browser(folders=(tmp_path / "x",), downloads=(tmp_path / "y",))
    assert not found.usable
    assert found.searched_paths == (tmp_path / "x", tmp_path / "y")


def test_folder_with_the_name_of_a_browser_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "chromium").mkdir()
    assert not find_browser(folders=(tmp_path,)).usable

"""Which browser is found, and what is said when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from cache.backends.browser_search import find_browser


def _program(path: Path, content: bytes = b"\x7fELF", mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_both_kinds_are_found_in_the_folders_given(tmp_path: Path) -> None:
    shell = _program(tmp_path / "lib" / "chromium-headless-shell")
    full = _program(tmp_path / "bin" / "google-chrome")
    found = find_browser(folders=(tmp_path / "lib", tmp_path / "bin"))
    assert (found.shell, found.full) == (shell, full)
    assert found.usable


def test_the_first_folder_wins(tmp_path: Path) -> None:
    first = _program(tmp_path / "a" / "chromium")
    _program(tmp_path / "b" / "chromium")
    assert find_browser(folders=(tmp_path / "a", tmp_path / "b")).full == first


def test_a_downloaded_one_is_found_and_the_newest_is_taken(tmp_path: Path) -> None:
    _program(tmp_path / "chromium-1100" / "chrome-linux" / "chrome")
    newest = _program(tmp_path / "chromium-1200" / "chrome-linux" / "chrome")
    shell = _program(tmp_path / "chromium_headless_shell-1200" / "chrome-linux" / "headless_shell")
    found = find_browser(folders=(), downloads=(tmp_path,))
    assert (found.full, found.shell) == (newest, shell)


def test_an_explicit_one_is_used_alone(tmp_path: Path) -> None:
    mine = _program(tmp_path / "my-chromium")
    _program(tmp_path / "chromium-headless-shell")
    found = find_browser(mine, folders=(tmp_path,))
    assert (found.full, found.shell, found.searched_paths) == (mine, None, (mine,))


def test_an_explicit_shell_is_known_by_its_name(tmp_path: Path) -> None:
    shell = _program(tmp_path / "chrome-headless-shell")
    assert find_browser(shell).shell == shell


@pytest.mark.parametrize("missing", [True, False])
def test_an_explicit_one_that_cannot_be_run_is_a_problem_and_not_replaced(tmp_path: Path, missing: bool) -> None:
    mine = tmp_path / "browser"
    if not missing:
        _program(mine, mode=0o644)
    _program(tmp_path / "chromium")
    found = find_browser(mine, folders=(tmp_path,))
    assert not found.usable
    assert str(mine) in found.problem


def test_nothing_found_says_where_it_was_looked_for(tmp_path: Path) -> None:
    found = find_browser(folders=(tmp_path / "x",), downloads=(tmp_path / "y",))
    assert not found.usable
    assert found.searched_paths == (tmp_path / "x", tmp_path / "y")


def test_a_folder_of_that_name_is_no_browser(tmp_path: Path) -> None:
    (tmp_path / "chromium").mkdir()
    assert not find_browser(folders=(tmp_path,)).usable

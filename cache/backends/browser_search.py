"""Search for installed browsers. Reads no environment variables; paths are passed in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SYSTEM_FOLDERS: tuple[Path, ...] = tuple(
    Path(folder)
    for folder in (
        "/usr/lib/chromium",
        "/usr/lib/chromium-browser",
        "/opt/google/chrome",
        "/usr/bin",
        "/usr/local/bin",
        "/opt/chromium",
        "/Applications/Google Chrome.app/Contents/MacOS",
        "/Applications/Chromium.app/Contents/MacOS",
    )
)
DOWNLOAD_FOLDERS: tuple[str, ...] = (".cache/ms-playwright", "Library/Caches/ms-playwright")
"""Folders below the home folder that ``patchright install`` fills, on Linux and macOS."""
INSTALL_BROWSER = (
    "Install Google Chrome, or Chromium with `patchright install chromium`, or set ASSAY_BROWSER to the path of "
    "Chromium or Chrome"
)
SHELL_NAMES = ("chromium-headless-shell", "chrome-headless-shell", "headless_shell")
FULL_NAMES = (
    "chromium",
    "chrome",
    "google-chrome-stable",
    "google-chrome",
    "chromium-browser",
    "Google Chrome",
    "Chromium",
)
_DOWNLOADED_SHELLS = ("chromium_headless_shell-*/*/headless_shell", "chromium_headless_shell-*/*/chrome-headless-shell")
_DOWNLOADED_FULL = (
    "chromium-*/*/chrome",
    "chromium-*/*/Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing",
    "chromium-*/*/Chromium.app/Contents/MacOS/Chromium",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBrowser:
    """Browsers found on this machine.

    Attributes:
        shell: The headless shell, if any.
        full: Full Chromium or Chrome, if any.
        searched_paths: Paths that were searched.
        problem: Why an explicitly configured browser cannot be used, else empty.
    """

    shell: Path | None
    full: Path | None
    searched_paths: tuple[Path, ...]
    problem: str = ""


def find_browser(
    explicit: Path | None = None,
    *,
    folders: Sequence[Path] = SYSTEM_FOLDERS,
    downloads: Sequence[Path] = (),
) -> FoundBrowser:
    """Find the browsers to use. If ``explicit`` is set, no other browser is searched for.

    ``folders`` are searched for known names. ``downloads`` are folders that ``patchright install`` fills.
    """
    if explicit is not None:
        return _explicit_browser(explicit)
    return FoundBrowser(
        shell=next(_find_programs(folders, SHELL_NAMES, downloads, _DOWNLOADED_SHELLS), None),
        full=next(_find_programs(folders, FULL_NAMES, downloads, _DOWNLOADED_FULL), None),
        searched_paths=(*folders, *downloads),
    )


def _explicit_browser(explicit: Path) -> FoundBrowser:
    if not _is_program(explicit):
        problem = f"ASSAY_BROWSER={explicit} is {'not a program that can be run' if explicit.exists() else 'not there'}"
        return FoundBrowser(shell=None, full=None, searched_paths=(explicit,), problem=problem)
    program = _resolve_start_script(explicit)
    is_shell = "headless" in program.name
    return FoundBrowser(
        shell=program if is_shell else None, full=None if is_shell else program, searched_paths=(explicit,)
    )


def _find_programs(
    folders: Sequence[Path], names: Sequence[str], downloads: Sequence[Path], patterns: Sequence[str]
) -> Iterator[Path]:
    for folder in folders:
        for name in names:
            if _is_program(folder / name):
                yield _resolve_start_script(folder / name)
    for folder in downloads:
        for pattern in patterns:
            # The newest download first.
            yield from (program for program in sorted(folder.glob(pattern), reverse=True) if _is_program(program))


def _is_program(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_mode & 0o111 != 0
    except OSError:
        return False


def _resolve_start_script(path: Path) -> Path:
    """Return the program behind a distribution's start script, because these scripts add unwanted flags."""
    try:
        with path.open("rb") as handle:
            if handle.read(2) != b"#!":
                return path
    except OSError:
        return path
    candidates = [folder / path.name for folder in SYSTEM_FOLDERS if (folder / path.name) != path]
    return next((program for program in candidates if _is_program(program)), path)

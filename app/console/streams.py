"""Output streams of commands: results to stdout, progress and messages to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from cache.terminal_text import escape_controls_in_json

if TYPE_CHECKING:
    from app.console.safe_console import SafeConsole


def stderr_console() -> SafeConsole:
    """Return the console for stderr: progress, warnings, errors."""
    return stdout_console(stderr=True)


def stdout_console(*, stderr: bool = False) -> SafeConsole:
    """Return the console for stdout: results of the command."""
    from app.console.safe_console import SafeConsole

    return SafeConsole(stderr=stderr, highlight=False)


def print_line(text: str) -> None:
    """Print text to stdout as it is, without markup and line breaks."""
    stdout_console().print_line(text)


def print_json(document: Any) -> None:
    """Print the JSON document of ``--json`` to stdout."""
    text = json.dumps(document, indent=2, ensure_ascii=False, default=str)
    sys.stdout.write(escape_controls_in_json(text) + "\n")


def print_error(message: str, hint: str | None = None) -> None:
    console = stderr_console()
    console.print("[bold red]error:[/]", end=" ")
    console.print(message, markup=False, soft_wrap=True)
    if hint:
        console.print(hint, markup=False, soft_wrap=True)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: ``1 page``, ``2 pages``. The plural ends in s if it is not given."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def suggestion(text: str, known: Iterable[str]) -> str:
    """Return a hint for the unknown name ``text``: similar names, or the first 12 known names."""
    names = sorted(known)
    if not names:
        return "None exist."
    close = get_close_matches(text, names, n=5, cutoff=0.5)
    if close:
        return f"Did you mean: {', '.join(close)}?"
    return f"Available: {', '.join(names[:12])}{', ...' if len(names) > 12 else ''}"

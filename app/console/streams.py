"""Where a command writes: progress and remarks to stderr, what was asked for to stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.markup import escape


def remarks() -> Console:
    """stderr: progress, warnings, errors."""
    return Console(stderr=True, highlight=False)


def output() -> Console:
    """stdout: what the command was asked for."""
    return Console(highlight=False)


def print_json(document: Any) -> None:
    """The one JSON document of ``--json``."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, default=str) + "\n")


def print_error(message: str, hint: str | None = None) -> None:
    console = remarks()
    console.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)
    if hint:
        console.print(escape(hint), soft_wrap=True)


def near(wanted: str, known: Iterable[str]) -> str:
    """A sentence on what ``wanted`` may have meant: near names, or all of a few, or how many there are."""
    from difflib import get_close_matches

    names = sorted(known)
    if not names:
        return "There is none at all."
    close = get_close_matches(wanted, names, n=5, cutoff=0.5)
    if close:
        return f"Did you mean: {', '.join(close)}?"
    return f"There are: {', '.join(names[:12])}{', ...' if len(names) > 12 else ''}"

"""Remembers what set-up has already done, so that doing it again costs nothing.

The stamp lives inside ``.venv``: whoever deletes the environment deletes the memory of it too.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

FORMAT = 1


@dataclass(frozen=True)
class Stamp:
    """What was installed, from which inputs; the browser that answered (None: not looked for), and the one wished."""

    inputs: str
    profiles: tuple[str, ...] = ()
    browser: str | None = None
    wish: str | None = None

    def covers(self, profile: str) -> bool:
        """The test environment holds everything the demo's does."""
        return profile in self.profiles or "test" in self.profiles

    def has_browser(self, wish: str | None) -> bool:
        """Whether the browser found earlier is still there, and still the one asked for (ASSAY_BROWSER)."""
        return self.browser is not None and self.wish == wish and os.access(self.browser, os.X_OK)

    def with_browser(self, browser: str, wish: str | None) -> Stamp:
        return replace(self, browser=browser, wish=wish)


def fingerprint(root: Path, files: Iterable[str], interpreter: str) -> str:
    """One digest (hex) over the place, the interpreter and the files that decide what is installed.

    The place counts because an environment that was moved or copied points at its old folder.
    """
    digest = hashlib.sha256(f"{FORMAT}\n{root}\n{interpreter}\n{platform.machine()}\n".encode())
    for name in files:
        digest.update(name.encode() + b"\0" + hashlib.sha256((root / name).read_bytes()).digest())
    return digest.hexdigest()


def load(path: Path) -> Stamp | None:
    """The stamp at ``path``; None where there is none or it cannot be read."""
    try:
        data: Any = json.loads(path.read_text("utf-8"))
        return Stamp(str(data["inputs"]), tuple(data["profiles"]), data["browser"], data["wish"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save(path: Path, stamp: Stamp) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(asdict(stamp), indent=1) + "\n", "utf-8")
    fresh.replace(path)

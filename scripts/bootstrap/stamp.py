"""Record of completed set-up steps, so that a second set-up can skip them.

The record is stored in ``.venv`` and is therefore deleted with the environment.
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
    """Completed set-up.

    ``inputs`` is a fingerprint, ``browser`` the path of the browser (None: not searched), ``wish`` the value of
    ASSAY_BROWSER.
    """

    inputs: str
    profiles: tuple[str, ...] = ()
    browser: str | None = None
    wish: str | None = None

    def covers(self, profile: str) -> bool:
        """Return whether ``profile`` is installed, alone or as a part of a larger one."""
        larger = {"demo": ("all", "test"), "all": ("test",)}
        return not {profile, *larger.get(profile, ())}.isdisjoint(self.profiles)

    def has_browser(self, wish: str | None) -> bool:
        """Return whether the recorded browser still exists and ASSAY_BROWSER has not changed."""
        return self.browser is not None and self.wish == wish and os.access(self.browser, os.X_OK)

    def with_browser(self, browser: str, wish: str | None) -> Stamp:
        return replace(self, browser=browser, wish=wish)


def fingerprint(root: Path, files: Iterable[str], interpreter: str) -> str:
    """Return a hex digest of everything that determines the installation: location, interpreter and lock files.

    The location is included because a virtual environment contains absolute paths and cannot be moved.
    """
    digest = hashlib.sha256(f"{FORMAT}\n{root}\n{interpreter}\n{platform.machine()}\n".encode())
    for name in files:
        digest.update(name.encode() + b"\0" + hashlib.sha256((root / name).read_bytes()).digest())
    return digest.hexdigest()


def load(path: Path) -> Stamp | None:
    """Return the stamp stored at ``path``, or None if it is missing or unreadable."""
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

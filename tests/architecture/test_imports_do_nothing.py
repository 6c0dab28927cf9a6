"""Importing a module has no side effects: no file, socket, process, thread or log handler."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.architecture.sources import PACKAGES, module_name, python_files

WATCH = Path(__file__).with_name("watch_imports.py")


def side_effects(modules: list[str], folder: Path) -> list[str]:
    """Return the side effects of importing these modules in a new process without settings."""
    done = subprocess.run(
        [sys.executable, "-X", "utf8", str(WATCH)],
        input=json.dumps(modules),
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PATH": "/nowhere", "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(folder)},
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    reported: list[str] = json.loads(done.stdout)
    return reported


def test_importing_every_module_has_no_side_effects(tmp_path: Path):
    modules = [module_name(path) for path in python_files(*PACKAGES) if path.stem != "__main__"]
    assert len(modules) > 20
    assert side_effects(modules, tmp_path) == []
    assert list(tmp_path.iterdir()) == []

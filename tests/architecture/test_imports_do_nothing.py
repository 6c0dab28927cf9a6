"""Importing a module has no side effects: no file, socket, process, thread or log handler."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.architecture.sources import PACKAGES, ROOT, module_name, python_files

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


def test_each_side_effect_of_an_import_is_detected(tmp_path: Path):
    effects = {
        "writes": "open('x.txt', 'w').close()",
        "opens": "open('/dev/null').close()",
        "makes": "import os; os.mkdir('y')",
        "connects": "import socket; socket.socket().connect_ex(('127.0.0.1', 9))",
        "starts": "import subprocess, sys; subprocess.run([sys.executable, '-c', ''])",
        "threads": "import threading, time; threading.Thread(target=time.sleep, args=(5,), daemon=True).start()",
        "logs": "import logging; logging.basicConfig()",
        "sets": "import os; os.environ['NEW'] = '1'",
        "reads": "import os; os.environ.get('SOME_SETTING')",
        "speaks": "print('hello')",
    }
    for name, line in effects.items():
        (tmp_path / f"{name}.py").write_text(line + "\n", "utf-8")
    seen = side_effects(list(effects), tmp_path)
    assert [name for name in effects if not any(report.startswith(f"{name}: ") for report in seen)] == []


def test_packages_are_imported_from_the_checkout():
    code = "import rubrics, mind2web2; print(rubrics.__file__); print(mind2web2.__file__)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert all(Path(line).is_relative_to(ROOT) for line in shown.stdout.split())

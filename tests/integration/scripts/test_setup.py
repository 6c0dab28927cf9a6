"""The complete set-up, in a separate checkout that needs no network: steps, up-to-date check, and errors."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bootstrap.session import INPUTS

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ensurepip") is None, reason="this Python makes no environments without apt-get"
)

ROOT = Path(__file__).resolve().parents[3]
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "tiny"
version = "1"
"""
BACKEND = """
import zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    about = "tiny-1.dist-info/"
    files = {"tiny.pth": ".", about + "METADATA": "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n",
             about + "WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
             about + "RECORD": ""}
    with zipfile.ZipFile(folder + "/tiny-1-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return "tiny-1-py3-none-any.whl"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Checkout with empty lock files: all steps run, and nothing is downloaded."""
    for name in INPUTS:
        (tmp_path / name).write_text("", "utf-8")
    (tmp_path / "pyproject.toml").write_text(PROJECT, "utf-8")
    (tmp_path / "backend.py").write_text(BACKEND, "utf-8")
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("cache/__init__.py", "cache/backends/__init__.py", "cache/backends/browser_search.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def run(checkout: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(checkout / "scripts" / "setup.py"), *arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(checkout), "PIP_NO_INDEX": "1", **variables},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture
def browser(tmp_path: Path) -> str:
    path = tmp_path / "a-browser"
    path.write_text(f"#!{sys.executable}\nprint('<p>assay 42</p>')\n")
    path.chmod(0o755)
    return str(path)


def test_every_step_runs_once_and_again_only_after_a_change(checkout: Path, browser: str):
    first = run(checkout, "test", ASSAY_BROWSER=browser)
    assert first.returncode == 0, first.stdout + first.stderr
    assert [line.strip() for line in first.stdout.splitlines() if line.endswith("...")] == [
        f"Python environment in {checkout}/.venv ...",
        "Packages of requirements-dev.lock, verified by hash ...",
        "Searching for a working browser ...",
    ]
    second = run(checkout, "demo", ASSAY_BROWSER=browser)
    assert second.stdout.startswith("Set-up is up to date")
    imported = subprocess.run(
        [str(checkout / ".venv/bin/python"), "-c", "import importlib.metadata as m; print(m.version('tiny'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert imported.stdout.strip() == "1"

    kept = checkout / ".venv" / "kept"
    kept.touch()
    (checkout / "requirements.lock").write_text("# moved\n", "utf-8")
    again = run(checkout, "demo", "--no-browser")
    assert again.returncode == 0
    assert "done kept" in again.stdout
    assert kept.exists()

"""The core can be imported, and builds its API, templates and commands, without the folders of the features."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

pytestmark = pytest.mark.slow

PACKAGES = ("app", "judges", "rubrics", "cache", "answers", "client")
EMPTY_LIST = """
from app.feature import Feature

FEATURES: tuple[Feature, ...] = ()
"""
USE_EVERYTHING = """
import pkgutil, sys
import app, mind2web2
from app.cli.program import run
from app.dashboard.assets import Assets
from app.dashboard.rendering import create_environment
from app.server.application import create_app
from app.settings import load_settings, settings_class
from app.storage.migrate import histories
from app.storage.tables import metadata

assert app.__file__.startswith(sys.argv[1]), app.__file__
for module in pkgutil.walk_packages(app.__path__, "app."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
web = create_app(load_settings())
paths = web.openapi()["paths"]
assert "/v1/submissions" in paths, sorted(paths)
assert not [path for path in paths if path.startswith("/v1/compare")], sorted(paths)
declared = set(settings_class().model_fields)
assert "max_tasks" in declared and not declared & {"suite_data", "suite_deadline_s"}, sorted(declared)
tables = set(metadata.tables)
assert "jobs" in tables and not tables & {"suite_runs", "suite_steps"}, sorted(tables)
assert [history.version_table for history in histories()] == ["alembic_version"]
templates = create_environment(Assets())
for name in templates.list_templates():
    templates.get_template(name)
run(["--help"])
"""


@pytest.fixture
def core(tmp_path: Path) -> Path:
    """Copy of the product without features."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    features = tmp_path / "app" / "features"
    for folder in features.iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)
    (features / "__init__.py").write_text(EMPTY_LIST)
    return tmp_path


def test_core_without_features_imports_and_describes_its_api_and_commands(core: Path):
    search_path = os.pathsep.join([str(core), str(core / "judges" / "compat"), str(core / "client")])
    ended = subprocess.run(
        [sys.executable, "-c", USE_EVERYTHING, str(core)],
        cwd=core,
        env={"PATH": os.environ["PATH"], "HOME": str(core), "PYTHONPATH": search_path},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "evaluate" in ended.stdout
    assert "compare" not in ended.stdout

"""Import contracts hold, and each one detects a violation."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

from tests.architecture.sources import ROOT, project_files

LINTER = Path(sys.executable).with_name("lint-imports")
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(LINTER), "--no-cache"], cwd=folder, capture_output=True, text=True, timeout=240, check=False
    )


def test_every_import_contract_is_kept():
    report = lint(ROOT)
    assert report.returncode == 0, report.stdout + report.stderr


def test_every_top_level_package_has_a_layer():
    outside = {"client", "examples", "scripts", "tests"}  # the client has a contract of its own
    folders = {path.relative_to(ROOT).parts[0] for path in project_files() if path.suffix == ".py"}
    folders.discard("mind2web2")
    layers = {name.strip() for layer in CONFIGURATION["contracts"][0]["layers"] for name in layer.split("|")}
    assert folders - outside == layers - {"mind2web2"}
    assert set(CONFIGURATION["root_packages"]) == layers | {"assay_client"}


@pytest.fixture
def empty_project(tmp_path: Path) -> Path:
    """Empty copy of the packages under the same import contracts, in which a test can add a violation."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    packages = [*CONFIGURATION["root_packages"], "judges/llm", "cache/backends"]
    packages += ["app/api", "app/storage", "app/features", "app/features/bundles", "app/features/suites"]
    for contract in CONFIGURATION["contracts"]:
        named = [*contract.get("source_modules", []), *contract.get("forbidden_modules", [])]
        packages += [name.replace(".", "/") for name in named if name.partition(".")[0] in packages]
    for package in packages:
        (tmp_path / package).mkdir(parents=True, exist_ok=True)
        (tmp_path / package / "__init__.py").touch()
    for contract in CONFIGURATION["contracts"]:
        for container in contract.get("containers", []):
            for name in re.findall(r"\w+", " ".join(contract["layers"])):
                if not (tmp_path / container / name).is_dir():
                    (tmp_path / container / f"{name}.py").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("rubrics/node.py", "import answers"),
        ("answers/citations.py", "import cache"),
        ("cache/urls.py", "import judges"),
        ("judges/context.py", "import mind2web2"),
        ("judges/llm/client.py", "import app"),
        ("assay_client/wire.py", "import app"),
        ("assay_client/wire.py", "import pydantic"),
        ("rubrics/node.py", "import asyncio"),
        ("rubrics/node.py", "from os import path"),
        ("rubrics/node.py", "import rubrics.lint"),
        ("app/storage/tables.py", "import app.service"),
        ("app/no_layer_of_its_own.py", "pass"),
        ("app/api/jobs.py", "import openai"),
        ("app/api/jobs.py", "import app.features.bundles"),
        ("app/features/bundles/__init__.py", "import app.features.suites"),
        ("judges/context.py", "from openai import AsyncOpenAI"),
        ("cache/backends/http.py", "from patchright.async_api import Page"),
        ("app/api/jobs.py", "import sqlalchemy"),
        ("app/features/suites/api.py", "import sqlalchemy"),
        ("cache/capture_index.py", "import psycopg"),
        ("judges/context.py", "import typer"),
    ],
)
def test_forbidden_import_is_detected(empty_project: Path, file: str, line: str):
    (empty_project / file).write_text(line + "\n", "utf-8")
    report = lint(empty_project)
    assert report.returncode == 1, report.stdout + report.stderr
    assert "1 broken" in report.stdout


def test_allowed_imports_pass(empty_project: Path):
    (empty_project / "judges/llm/openai.py").write_text("import openai\n", "utf-8")
    (empty_project / "cache/backends/patchright.py").write_text("import patchright\n", "utf-8")
    (empty_project / "app/storage/schema.py").write_text("import sqlalchemy\nimport judges\n", "utf-8")
    (empty_project / "app/features/suites/storage.py").write_text("import sqlalchemy\nimport app.storage\n", "utf-8")
    report = lint(empty_project)
    assert report.returncode == 0, report.stdout + report.stderr


def test_no_module_imports_itself_through_others():
    """Also counts imports inside functions and for type checking."""
    graph = grimp.build_graph(*CONFIGURATION["root_packages"], cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))

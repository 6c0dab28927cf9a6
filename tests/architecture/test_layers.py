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


FORBIDDEN = {
    "rubrics/tree.py": "import answers\nimport asyncio\nimport rubrics.lint\n",
    "answers/errors.py": "import answers.jsonl\n",
    "app/storage/tables.py": "import app.service\n",
    "app/dashboard/__init__.py": "import app.storage\n",
    "assay_client/wire.py": "import app\nimport pydantic\n",
    "app/api/jobs.py": "import openai\nimport sqlalchemy\n",
    "app/features/bundles/__init__.py": "import app.features.suites\n",
    "cache/backends/http.py": "from patchright.async_api import Page\n",
    "judges/context.py": "import typer\n",
}


def test_each_contract_detects_a_violation(empty_project: Path):
    for file, lines in FORBIDDEN.items():
        (empty_project / file).write_text(lines, "utf-8")
    report = lint(empty_project)
    assert f"0 kept, {len(CONFIGURATION['contracts'])} broken" in report.stdout, report.stdout + report.stderr


def test_no_module_imports_itself_through_others():
    """Also counts imports inside functions and for type checking."""
    graph = grimp.build_graph(*CONFIGURATION["root_packages"], cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))

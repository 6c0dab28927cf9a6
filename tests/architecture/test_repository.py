"""Files around the code: locks, compose file, Dockerfile, Makefile."""

from __future__ import annotations

import ast
import re
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder

from tests.architecture.sources import PACKAGES, ROOT, STANDARD, parsed, python_files, texts

LOCKS = sorted(ROOT.glob("requirements*.lock"))
REGISTRY_HOSTS = ("pypi." + "org", "pythonhosted." + "org", "registry.npmjs." + "org", "deb.debian." + "org")
MACHINE_PATHS = re.compile(
    r"(?<![\w./-])/(?:" + "|".join(["work/main", "work/shared", "root/", r"home/(?!assay\b)\w+/"]) + ")"
)
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_lock_names_no_index_and_hashes_every_package(lock: Path):
    text = lock.read_text("utf-8")
    assert not re.search(r"^\s*--(?:extra-)?index|--find-links|https?://", text, re.MULTILINE)
    entries = re.split(r"\n(?=\S)", text)
    pinned = [entry for entry in entries if not entry.startswith(("#", " "))]
    assert len(pinned) > 5
    assert [entry.split()[0] for entry in pinned if "==" not in entry or "--hash=sha256:" not in entry] == []


def test_locks_contain_every_declared_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    core, full, dev = (_locked(f"requirements{name}.lock") for name in ("", "-all", "-dev"))
    assert _names(project["project"]["dependencies"]) <= core < full < dev
    optional = {item for group in project["project"]["optional-dependencies"].values() for item in group}
    assert _names(item for item in optional if not item.startswith("assay[")) <= full
    assert _names(item for item in project["dependency-groups"]["dev"] if isinstance(item, str)) <= dev


def test_every_imported_library_is_declared():
    """A library that only another library depends on can disappear with the next version of that one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    optional = [item for group in project["project"]["optional-dependencies"].values() for item in group]
    declared = {name.replace("-", "_") for name in _names([*project["project"]["dependencies"], *optional])}
    imported = {name for path in python_files(*PACKAGES) for name in _imported(parsed(path))}
    known = {DISTRIBUTIONS.get(name, name).lower() for name in imported}
    assert known - declared == set()


DISTRIBUTIONS = {
    "PIL": "pillow",
    "markdown_it": "markdown_it_py",
    "psycopg_pool": "psycopg",
    "pydantic_core": "pydantic",
    "dotenv": "pydantic_settings",
    "starlette": "fastapi",
    "multipart": "python_multipart",
    "yaml": "pyyaml",
}
"""Distribution names of libraries whose import name differs."""


def _imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
    roots = {name.partition(".")[0] for name in names}
    return roots - set(STANDARD) - {*PACKAGES, "assay_client", "mind2web2", "tests"}


def _names(requirements) -> set[str]:
    return {re.split(r"[\[<>=!~; ]", item)[0].lower() for item in requirements}


def _locked(lock: str) -> set[str]:
    return set(re.findall(r"^([\w.-]+)(?:\[.*?\])?==", (ROOT / lock).read_text("utf-8"), re.MULTILINE))


def test_no_file_names_a_registry_or_a_local_path():
    found = [
        f"{name}: {hit}"
        for name, text in texts()
        for hit in [*(host for host in REGISTRY_HOSTS if host in text), *MACHINE_PATHS.findall(text)]
    ]
    assert found == []


def test_every_service_has_a_health_check_and_minimal_privileges():
    for name, service in SERVICES.items():
        assert service["healthcheck"]["test"], name
        if "build" in service:
            assert service["cap_drop"] == ["ALL"], name
            assert service["read_only"] is True, name
            assert "no-new-privileges:true" in service["security_opt"], name
    assert re.search(r"^USER assay$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE)


def test_editable_installation_contains_no_copy_of_a_package(tmp_path: Path):
    """A copy would be imported instead of the checkout, and would stay as it is when the checkout changes."""
    [wheel] = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["editable"])
    with zipfile.ZipFile(wheel) as archive:
        assert [name for name in archive.namelist() if ".dist-info/" not in name] == ["_assay.pth"]

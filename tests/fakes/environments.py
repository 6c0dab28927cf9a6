"""Environments with some of the installed packages, made without a package index."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Virtual environment."""

    python: Path
    site_packages: Path


def environment_with(folder: Path, requirements: Iterable[str]) -> Environment:
    """Create an environment that contains links to the packages in ``requirements`` and those that they need."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    [site] = folder.glob("lib/python*/site-packages")
    for distribution in _closure(map(Requirement, requirements)):
        for top in {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(str(distribution.locate_file(top)))
    return Environment(python=folder / "bin" / "python", site_packages=site)


def build_wheel(project: Path, folder: Path) -> Path:
    """Build the wheel of a project into a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=120)
    [built] = folder.glob("*.whl")
    return built


def _closure(requirements: Iterable[Requirement]) -> list[metadata.Distribution]:
    found: dict[str, metadata.Distribution] = {}
    done: set[tuple[str, str]] = set()
    waiting = [(one, extra) for one in requirements for extra in ("", *one.extras)]
    while waiting:
        requirement, extra = waiting.pop()
        if (requirement.name, extra) in done:
            continue
        done.add((requirement.name, extra))
        distribution = found.setdefault(requirement.name, metadata.distribution(requirement.name))
        for each in map(Requirement, distribution.requires or ()):
            if each.marker is None or each.marker.evaluate({"extra": extra}):
                waiting += [(each, more) for more in ("", *each.extras)]
    return list(found.values())

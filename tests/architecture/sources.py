"""Files of this checkout for the architecture tests. Does not need git."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("rubrics", "answers", "cache", "judges", "app", "client")
COMPAT = Path("judges") / "compat"
STANDARD = sys.stdlib_module_names
IGNORED_FOLDERS = {"data", "__pycache__", "node_modules", "results", "build", "dist"}
BINARY = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".pdf", ".woff", ".woff2", ".gz", ".zip", ".tar", ".bin"}


def project_files(root: Path = ROOT) -> Iterator[Path]:
    """Yield every file of the project, except those in ignored folders."""
    for path in sorted(root.iterdir()):
        if path.name in IGNORED_FOLDERS or (path.name.startswith(".") and path.name != ".ci"):
            continue
        if path.is_dir():
            yield from project_files(path)
        elif path.is_file():
            yield path


def texts() -> Iterator[tuple[str, str]]:
    """Yield (path relative to the root, content) for every text file, including the dot files of the root."""
    dotted = [path for path in (ROOT / ".gitignore", ROOT / ".dockerignore") if path.exists()]
    for path in [*project_files(), *dotted]:
        if path.suffix not in BINARY:
            yield str(path.relative_to(ROOT)), path.read_text("utf-8", "replace")


def python_files(*folders: str) -> list[Path]:
    """Return the Python files in these top-level folders."""
    return [path for folder in folders for path in project_files(ROOT / folder) if path.suffix == ".py"]


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file, parsed once for all checks. Do not modify it."""
    return ast.parse(path.read_text("utf-8"), filename=str(path))


def module_name(path: Path) -> str:
    """Return the import name of a file, without the prefixes ``judges/compat`` and ``client``.

    >>> module_name(ROOT / "judges" / "compat" / "mind2web2" / "__init__.py")
    'mind2web2'
    """
    relative = path.relative_to(ROOT)
    for root in (COMPAT, Path("client")):
        if relative.is_relative_to(root):
            relative = relative.relative_to(root)
    parts = relative.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def location(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"

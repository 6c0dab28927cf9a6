"""House rules that no linter checks: environment access, broad exception handlers, faults of Python versions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.sources import PACKAGES, location, module_name, parsed, python_files

BROAD = {"Exception", "BaseException"}

MAY_READ_ENVIRONMENT = {
    "app.settings": "configuration of the service",
    "mind2web2.environment": "public scripts create clients without a key and expect it in the environment",
}
MAY_CATCH_EVERYTHING = {
    "judges.source_code": "a task file may raise any exception when it is imported or run",
    "app.cli.program": "errors of a task group are in an exception group; those that are not expected are raised again",
    "app.cli": "an error of a command that was interrupted is not shown",
    "app.interruption": "a failed action must not prevent the end of the process",
    "mind2web2.evaluation": "an error in one answer must not stop the others",
    "app.jobs.execution": "an error in one job must not stop the others",
    "cache.backends.patchright": "the browser library raises Exception when its driver has exited",
    "mind2web2.foreign_client": "a public script may use its own client, which may raise any exception",
    "mind2web2.cli": "an unexpected error ends a command with one line and exit code 1, as the toolkit's users expect",
    "cache.image_jobs": "a thread pool passes any exception of a call to the caller, through its future",
}

SOURCES = python_files(*PACKAGES)


def environment_reads(tree: ast.Module) -> Iterator[int]:
    """Yield lines that read or write the process environment."""
    names = {"environ", "environb", "getenv", "putenv", "unsetenv"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in names and isinstance(node.value, ast.Name):
            if node.value.id == "os":
                yield node.lineno
        elif isinstance(node, ast.ImportFrom):
            from_os = node.module == "os" and bool(names & {alias.name for alias in node.names})
            if from_os or node.module == "pydantic_settings":
                yield node.lineno


def broad_handlers(tree: ast.Module) -> Iterator[int]:
    """Yield lines of handlers that catch everything and do not raise it again."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and not _raises_again(node):
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            if any(kind is None or (isinstance(kind, ast.Name) and kind.id in BROAD) for kind in caught):
                yield node.lineno


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def violations(check, allowed=()) -> list[str]:
    return [
        location(path, line) for path in SOURCES if module_name(path) not in allowed for line in check(parsed(path))
    ]


def test_only_allowed_modules_read_the_environment():
    assert violations(environment_reads, MAY_READ_ENVIRONMENT) == []


def test_only_allowed_modules_catch_everything():
    assert violations(broad_handlers, MAY_CATCH_EVERYTHING) == []


@pytest.mark.parametrize(
    ("check", "line"),
    [
        (environment_reads, "import os\nkey = os.environ['KEY']"),
        (environment_reads, "from pydantic_settings import BaseSettings"),
        (broad_handlers, "try:\n    pass\nexcept (ValueError, BaseException):\n    pass"),
    ],
)
def test_each_check_detects_a_violation(check, line: str):
    assert list(check(ast.parse(line)))

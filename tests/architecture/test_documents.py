"""Documentation matches the code, and its links resolve."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from app.cli.program import program
from app.dashboard.wording import JOB_ERRORS
from app.observability.metrics import Metrics
from app.server.application import create_app
from app.settings import Settings, load_settings
from judges.trial import try_judge
from rubrics.lint import lint
from tests.architecture.sources import ROOT, project_files

DOCUMENTS = sorted(path for path in project_files() if path.suffix == ".md" and "answers" not in path.parts)
PROJECT_DOCUMENTS = [path for path in DOCUMENTS if path.parent == ROOT or path.is_relative_to(ROOT / "docs")]
OPERATIONS = (ROOT / "docs" / "operations.md").read_text("utf-8")
HTTP_API = (ROOT / "docs" / "http-api.md").read_text("utf-8")


@cache
def headings(path: Path) -> set[str]:
    """Return the anchors of a document, as a browser derives them from its headings."""
    titles = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_links_resolve():
    broken = []
    for document in PROJECT_DOCUMENTS:
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", document.read_text("utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", prose):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            path = (document.parent / name).resolve() if name else document
            if not path.exists() or (anchor and anchor not in headings(path)):
                broken.append((document.name, target))
    assert broken == []


def test_files_named_in_a_document_exist():
    pattern = re.compile(r"`((?:app|judges|rubrics|cache|answers|docs|scripts|tests)/[\w./*-]+)`")
    named = {(path.name, name) for path in PROJECT_DOCUMENTS for name in pattern.findall(path.read_text("utf-8"))}
    assert [(document, name) for document, name in sorted(named) if not list(ROOT.glob(name.rstrip("/")))] == []


def variables() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        yield str(field.validation_alias or f"ASSAY_{name.upper()}")


def test_every_setting_is_documented_and_exists():
    rows = "".join(line for line in OPERATIONS.splitlines(keepends=True) if line.startswith("| `"))
    known = set(variables())
    assert known - set(re.findall(r"`([A-Z][A-Z_]+)`", rows)) == set()
    assert set(re.findall(r"\bASSAY_[A-Z_]+", _all_documents())) - known == set()


def test_documented_numbers_match_the_defaults():
    numbers = {
        f"ASSAY_{name.upper()}": field.default
        for name, field in Settings.model_fields.items()
        if isinstance(field.default, int | float) and not isinstance(field.default, bool)
    }
    documented = dict(re.findall(r"^\| `(ASSAY_[A-Z_]+)` \| ([\d.]+) \|", OPERATIONS, re.MULTILINE))
    assert {name: float(value) for name, value in documented.items()} == numbers


def commands(command: Any, path: str) -> Iterator[str]:
    """Yield the full names of all commands below a Typer command."""
    below = getattr(command, "commands", {})
    if path.count(" ") and (not below or command.invoke_without_command):
        yield path
    for name, one in below.items():
        yield from commands(one, f"{path} {name}")


def test_every_command_is_documented_and_exists():
    whole: Any = typer.main.get_command(program())
    known = set(commands(whole, "assay"))
    assert len(known) > 5
    table = OPERATIONS.partition("## Commands")[2].partition("\n## ")[0]
    assert [command for command in sorted(known) if f"`{command}" not in table] == []
    code = "\n".join(re.findall(r"(?s)```sh\n.*?```|`[^`\n]+`", _all_documents()))
    mentioned = re.findall(r"(?:^ *|`)(?:\S*/)?assay ((?: ?[a-z][a-z0-9-]*)+)", code, re.MULTILINE)
    assert {words for words in set(mentioned) if _is_unknown(words, whole)} == set()


def _is_unknown(words: str, command: Any) -> bool:
    """Return whether ``words`` after ``assay`` name no command. The arguments of a command may follow its name."""
    for word in words.split():
        below = getattr(command, "commands", None)
        if below is None:
            return False
        if word not in below:
            return True
        command = below[word]
    return False


def test_every_http_endpoint_is_documented_and_exists():
    app = create_app(load_settings())
    known = {f"{method.upper()} {path}" for path, operations in app.openapi()["paths"].items() for method in operations}
    documented = re.findall(r"^\| `([A-Z]+ /\S+)` \|", HTTP_API, re.MULTILINE)
    assert sorted(known) == sorted(documented)


def test_every_job_error_is_documented_and_explained_on_the_dashboard():
    table = HTTP_API.partition("| `error.code` | meaning |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `([A-Z_]+)` \|", table, re.MULTILINE)) == sorted(JOB_ERRORS)
    raised = re.findall(r'code="([A-Z_]+)"', (ROOT / "app" / "jobs" / "execution.py").read_text("utf-8"))
    assert set(raised) - JOB_ERRORS.keys() == set()
    assert len(raised) > 5


def test_every_metric_is_documented():
    names = set(re.findall(r"^# HELP (\w+)", Metrics().expose().decode(), re.MULTILINE))
    ours = {name.removesuffix("_created") for name in names}
    assert [name for name in sorted(ours) if f"`{name}" not in OPERATIONS] == []


@cache
def _all_documents() -> str:
    return "\n".join(path.read_text("utf-8") for path in PROJECT_DOCUMENTS)


def test_documented_example_task_gets_the_documented_score(tmp_path: Path):
    text = (ROOT / "docs" / "add-a-task.md").read_text("utf-8")
    [code, *_] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    judge = tmp_path / "walden_pond.py"
    judge.write_text(code, "utf-8")
    page = "https://ponds.example/walden"
    answer = f"- Depth: 102 feet\n- Year: 1939\n- Source: {page}\n"
    judged = asyncio.run(try_judge(judge, answer, {page: "Walden Pond is 102 feet deep. It lies in Concord."}))
    assert judged.score.value == pytest.approx(2 / 3)
    assert "= 0.667" in text
    assert lint(judged.rubric) == []

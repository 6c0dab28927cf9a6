"""Options, settings, answers and judges of the commands that work without a server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from answers.errors import AnswersNotFound, InvalidSubmission
from answers.public_layout import ignored_files, read_folder
from answers.submission import Submission
from app.console.answer_files import ignored_message, report_ignored
from app.console.errors import ToolFailed, WrongUsage, require_folder
from app.console.streams import suggestion
from app.observability.logs import Redactor, configure_logging
from app.settings import TASK_FOLDER, Settings, load_settings
from cache.capture import EvidencePolicy
from judges.errors import ModelNotConfigured
from judges.llm.parameters import RunParameters
from judges.loader import JudgeCatalogue

AgentOption: TypeAlias = Annotated[str, typer.Option("--agent", help="Agent that wrote the answers.")]
TaskOption: TypeAlias = Annotated[
    list[str] | None, typer.Option("--task", metavar="ID", help="Only this task. Repeatable.")
]
TaskFolderOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--out", help="Folder for the task files (default: the first of ASSAY_JUDGES, or judges.d)."),
]
AnswersOption: TypeAlias = Annotated[Path, typer.Option("--answers", help="Folder with <agent>/<task>/answer_<k>.md.")]
CacheOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--cache", help="Page cache in the public layout to read and update (default: the data folder)."),
]
EvidenceOption: TypeAlias = Annotated[
    EvidencePolicy | None,
    typer.Option(
        "--evidence",
        help="Use of pages that agents supply in answer_<k>.evidence: not at all (captured), where a page cannot be "
        "read (fallback), or instead of opening pages (supplied) (default: as the task says, else captured).",
    ),
]
JudgesOption: TypeAlias = Annotated[Path | None, typer.Option("--judges", help="Additional folder with task files.")]
ModelOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--model-option",
        metavar="NAME=VALUE",
        help="Parameter of model requests: effort (none, minimal, low, medium, high, xhigh, max, or default for that "
        "of the provider), temperature, or max_tokens of a reply, including reasoning. For one role: "
        "verify.effort=high, extract.temperature=0. Repeatable (default: ASSAY_MODEL_OPTIONS).",
    ),
]
JudgeOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="Model, as provider/model. An odd number of them, with commas between them, is a jury whose majority "
        "decides; its first model also extracts the values (default: ASSAY_MODEL).",
    ),
]
PageTextsOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--pages", help="JSON object that maps URL to page text. No page is captured; other URLs return 404."),
]
ReplayBudgetOption: TypeAlias = Annotated[
    float | None,
    typer.Option(metavar="USD", help="Stop asking when this cost is reached (default: ASSAY_BUDGET_USD)."),
]
MaxPagesOption: TypeAlias = Annotated[
    int | None, typer.Option("--max-pages", min=1, help="Maximum concurrent page captures (default: 5).")
]


_MAX_NAMED: Final = 5
"""Maximum number of ignored files that an error names."""


def judging_settings(*, judges: Path | None = None, evidence: Path | None = None, **flags: Any) -> Settings:
    """Return the settings, overridden by ``flags`` that are not None.

    ``judges`` takes precedence over the judge folders of the settings. ``evidence`` replaces the data folder.

    Raises:
        WrongUsage: The folder of judges does not exist, or a model option is invalid.
        InvalidSettings: A setting is invalid.
    """
    try:
        RunParameters.of_options(flags.get("model_options") or ())
    except ValueError as error:
        raise WrongUsage(f"--model-option {error}") from error
    settings = load_settings(**{name: value for name, value in flags.items() if value is not None})
    changes: dict[str, Any] = {}
    if judges is not None:
        require_folder("--judges", judges)
        changes["judges"] = (judges, *settings.judges)
    if evidence is not None:
        changes["data_dir"] = evidence
    settings = settings.model_copy(update=changes)
    return settings if flags.get("budget_usd") is None else settings.with_budget_flag("--budget")


def task_folder(out: Path | None) -> Path:
    """Return the folder for new task files: ``out``, or the first folder of ASSAY_JUDGES, or ``judges.d``."""
    return out or next(iter(load_settings().judges), TASK_FOLDER)


def quiet_logging(settings: Settings) -> None:
    """Log only warnings and errors if the level is ``info``, because progress is displayed separately."""
    level = "warning" if settings.log_level == "info" else settings.log_level
    configure_logging(Redactor(settings.secrets), level=level)


def find_answers(root: Path, agent: str, task_ids: Sequence[str]) -> tuple[Submission, ...]:
    """Return the answers of the agent below ``root``, and report the files that are not answers.

    Raises:
        WrongUsage: There are none, or they are invalid. The hint names similar agents or tasks.
    """
    try:
        submissions = read_folder(root, agent, task_ids)
    except AnswersNotFound as error:
        raise WrongUsage(f"{error} (searched {root.absolute()})", hint=_suggestions(root, agent, task_ids)) from error
    except InvalidSubmission as error:
        problems = "\n".join(f"{problem.path}: {problem.message}" for problem in error.problems)
        raise WrongUsage("some answers are invalid", hint=problems) from error
    report_ignored(ignored_files(root, agent, task_ids))
    return submissions


def check_tasks(task_ids: Sequence[str], catalogue: JudgeCatalogue) -> None:
    """Check that every task has a task file.

    Raises:
        WrongUsage: A task has none.
    """
    known = catalogue.judges.keys() | catalogue.broken.keys()
    for task_id in task_ids:
        if task_id not in known:
            raise no_judge(task_id, known)


@contextmanager
def baseline_suggested() -> Iterator[None]:
    """Suggest the lexical baseline if no client of the model can be created."""
    try:
        yield
    except ModelNotConfigured as error:
        hint = "Run with --model lexical for a baseline that compares words and needs no key."
        raise ToolFailed(str(error), hint=hint) from error


def no_judge(task_id: str, known: Iterable[str]) -> WrongUsage:
    """Return the error for a task without a task file."""
    folders = "Set the folder of other task files with --judges or ASSAY_JUDGES."
    return WrongUsage(f"no task file exists for {task_id!r}", hint=f"{suggestion(task_id, known)}\n{folders}")


def _suggestions(root: Path, agent: str, task_ids: Sequence[str]) -> str:
    if not root.is_dir():
        problem = "is a file" if root.exists() else "does not exist"
        return f"The folder {root} {problem}. Set another one with --answers: it contains {agent}/<task>/answer_<k>.md."
    if not (root / agent).is_dir():
        agents = [name for name in _folders(root) if any((root / name).glob("*/answer_*.md"))]
        if not agents:
            return f"{root} contains no answers. Write them to {root}/{agent}/<task>/answer_<k>.md, or set --answers."
        return f"{suggestion(agent, agents)}\nSet another folder with --answers."
    tasks = _folders(root / agent)
    missing = [task_id for task_id in task_ids if task_id not in tasks]
    ignored = [ignored_message(path) for path in ignored_files(root, agent, task_ids)[:_MAX_NAMED]]
    prefix = "{}: " if len(missing) > 1 else ""
    hints = "\n".join(prefix.format(task_id) + suggestion(task_id, tasks) for task_id in missing)
    return "\n".join(filter(None, (hints, *ignored))) or "Answers are named answer_<k>.md, with k from 1."


def _folders(parent: Path) -> list[str]:
    return sorted(path.name for path in parent.iterdir() if path.is_dir() and not path.name.startswith((".", "_")))

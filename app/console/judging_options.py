"""What the commands that judge without a server have in common: settings from flags, answers, judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from app.console.errors import WrongUsage
from app.console.streams import near

if TYPE_CHECKING:
    from answers.submission import Submission
    from app.settings import Settings
    from judges.loader import JudgeCatalogue

AgentOption: TypeAlias = Annotated[str, typer.Option("--agent", help="The agent that gave the answers.")]
TaskOption: TypeAlias = Annotated[list[str] | None, typer.Option("--task", help="Only this task; may be repeated.")]
AnswersOption: TypeAlias = Annotated[Path, typer.Option("--answers", help="Folder of <agent>/<task>/answer_<k>.md.")]
CacheOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--cache", help="Page cache in the public layout, read and written. Default: the data folder."),
]
JudgesOption: TypeAlias = Annotated[Path | None, typer.Option("--judges", help="A further folder of judge files.")]


class OnOff(StrEnum):
    """The two words of a switch that is on unless it is said otherwise."""

    ON = "on"
    OFF = "off"


IsolateOption: TypeAlias = Annotated[
    OnOff | None,
    typer.Option("--isolate", help="Run each judge file in a process of its own, without keys; off to debug it."),
]
EffortOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="EFFORT",
        help="Reasoning effort: none, minimal, low, medium, high, xhigh, max, or default for the provider's own.  "
        "[default: ASSAY_REASONING_EFFORT, else max for the default model]",
    ),
]
TemperatureOption: TypeAlias = Annotated[
    float | None, typer.Option(min=0.0, max=2.0, help="Temperature.  [default: 0 where the model takes it]")
]
MaxOutputOption: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Maximum output tokens of a reply, reasoning included.  [default: no limit]"),
]
RoleEffortOption: TypeAlias = Annotated[
    str | None, typer.Option(metavar="EFFORT", help="--reasoning-effort for this kind of request only.")
]
RoleTemperatureOption: TypeAlias = Annotated[
    float | None, typer.Option(min=0.0, max=2.0, help="--temperature for this kind of request only.")
]
RoleMaxOutputOption: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="--max-output-tokens for this kind of request only.")
]
MaxPagesOption: TypeAlias = Annotated[
    int | None, typer.Option("--max-pages", min=1, help="Page captures at once.  [default: 5]")
]


_PARAMETERS = ("reasoning_effort", "temperature", "max_output_tokens")


def parameter_flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """Of a command's arguments those that are sent to models, by role or for all."""
    return {name: value for name, value in given.items() if name.endswith(_PARAMETERS)}


def judging_settings(*, judges: Path | None = None, evidence: Path | None = None, **flags: Any) -> Settings:
    """The settings with what was given as a flag on top.

    ``judges`` goes before the folders of the settings; ``evidence`` is where pages are kept in place of the data
    folder.

    Raises:
        WrongUsage: the folder of judges is not there.
        WrongSettings: a setting cannot be used.
    """
    from app.settings import load_settings

    settings = load_settings(**{name: value for name, value in flags.items() if value is not None})
    changes: dict[str, Any] = {}
    if judges is not None:
        if not judges.is_dir():
            raise WrongUsage(f"--judges {judges}: there is no such folder")
        changes["judges"] = (judges, *settings.judges)
    if evidence is not None:
        changes["data_dir"] = evidence
    return settings.model_copy(update=changes)


def quiet_logging(settings: Settings) -> None:
    """Log warnings and worse only: progress is shown otherwise."""
    from app.observability.logs import configure_logging
    from app.observability.redaction import Redactor

    level = "warning" if settings.log_level == "info" else settings.log_level
    configure_logging(Redactor(settings.secrets), level=level)


def find_answers(root: Path, agent: str, task_ids: Sequence[str]) -> tuple[Submission, ...]:
    """The agent's answers below ``root``.

    Raises:
        WrongUsage: there are none; says where was looked and what is there.
    """
    from answers.bundle import read_folder
    from answers.errors import AnswersNotFound, InvalidSubmission

    try:
        return read_folder(root, agent, task_ids)
    except AnswersNotFound as error:
        raise WrongUsage(
            f"{error} (looked in {root.absolute()})", hint=_what_is_there(root, agent, task_ids)
        ) from error
    except InvalidSubmission as error:
        raise WrongUsage("answers that cannot be judged", hint="\n".join(_listed(error))) from error


def check_tasks(wanted: Sequence[str], catalogue: JudgeCatalogue) -> None:
    """Raises WrongUsage when a task that was named has no judge file at all."""
    known = catalogue.judges.keys() | catalogue.broken.keys()
    for task_id in wanted:
        if task_id not in known:
            raise WrongUsage(f"there is no judge for task {task_id!r}", hint=near(task_id, known))


def _listed(error: Exception) -> list[str]:
    from answers.errors import InvalidSubmission

    return [f"{one.path}: {one.message}" for one in error.problems] if isinstance(error, InvalidSubmission) else []


def _what_is_there(root: Path, agent: str, task_ids: Sequence[str]) -> str:
    if not root.is_dir():
        return "That folder does not exist. Name the right one with --answers."
    if not (root / agent).is_dir():
        return near(agent, _folders(root))
    tasks = _folders(root / agent)
    missing = [task_id for task_id in task_ids if task_id not in tasks]
    return "\n".join(f"{task_id}: {near(task_id, tasks)}" for task_id in missing) or "Answers are *.md files in there."


def _folders(parent: Path) -> list[str]:
    return sorted(path.name for path in parent.iterdir() if path.is_dir() and not path.name.startswith((".", "_")))

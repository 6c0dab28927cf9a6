"""Registration of all commands, and conversion of expected errors to a message and an exit code.

Keep this module cheap to import, because every ``assay --help`` imports it. Commands import their dependencies when
they run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated

import typer

from answers.errors import AnswersError
from app.cli import (
    backup,
    cache,
    capture,
    demo,
    doctor,
    evaluate,
    jobs,
    keys,
    providers,
    prune,
    serve,
    submit,
    summary,
    tasks,
    usage,
)
from app.console.errors import CliError, Exit
from app.console.streams import print_error
from app.errors import AppError
from app.feature import Commands
from app.features import FEATURES
from cache.errors import BrowserUnavailable, CacheError
from judges.errors import JudgeBug, JudgeError


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        typer.echo(f"assay {version('assay')}")
        raise typer.Exit


def program() -> typer.Typer:
    """Build the ``assay`` command with all subcommands."""
    top = typer.Typer(
        name="assay",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    top.callback()(_options)
    capture_group, tasks_group = capture.program(), tasks.program()
    top.command("demo")(demo.demo)
    top.command("serve")(serve.serve)
    top.command("worker")(serve.worker)
    top.command("submit")(submit.submit)
    top.command("evaluate")(evaluate.evaluate)
    top.add_typer(capture_group, name="capture")
    top.add_typer(tasks_group, name="tasks")
    top.command("jobs")(jobs.jobs)
    top.command("usage")(usage.usage)
    top.command("results")(jobs.results)
    top.command("summary")(summary.summary)
    commands = Commands(program=top, groups={"capture": capture_group, "tasks": tasks_group})
    for feature in FEATURES:
        if feature.commands is not None:
            feature.commands(commands)
    top.add_typer(cache.program(), name="cache")
    top.add_typer(keys.program(), name="keys")
    top.add_typer(providers.program(), name="providers")
    top.command("prune")(prune.prune)
    top.command("backup")(backup.backup)
    top.command("restore")(backup.restore)
    top.command("doctor")(doctor.doctor)
    return top


def _options(
    show_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Check the cited answers of research agents. Every score can be verified."""


@functools.cache
def _command() -> Callable[..., object]:
    return typer.main.get_command(program())


def run(arguments: list[str] | None = None) -> None:
    """Run one command. Always raises SystemExit.

    Errors that a user can cause or fix become a message on stderr and an exit code. All other errors are bugs and keep
    their traceback.
    """
    try:
        _command()(args=arguments, prog_name="assay")
    except CliError as error:
        print_error(str(error), error.hint)
        raise SystemExit(error.exit_code) from None
    except JudgeBug as error:
        print_error(str(error), error.traceback)
        raise SystemExit(Exit.FAILED) from None
    except BrowserUnavailable as error:
        print_error(str(error), "Run `assay doctor` to test the browser.")
        raise SystemExit(Exit.FAILED) from None
    except (AppError, JudgeError, CacheError, AnswersError) as error:
        print_error(str(error))
        raise SystemExit(Exit.FAILED) from None

"""All commands under one roof, and the border at which expected errors become one line and an exit code.

Kept cheap to import, since every ``assay --help`` pays for it: the commands import what they need when they run.
"""

from __future__ import annotations

from typing import Annotated

import typer

from answers.errors import AnswersError
from app.cli import (
    backup,
    bundle,
    cache,
    capture,
    compare,
    conformance,
    demo,
    doctor,
    evaluate,
    exporting,
    extension,
    gate,
    importing,
    jobs,
    keys,
    meta_eval,
    mind2web,
    mm_mind2web,
    providers,
    prune,
    rejudge,
    sensitivity,
    serve,
    submit,
    summary,
    tasks,
    usage,
)
from app.cli.console import print_error
from app.cli.errors import CliError, Exit
from app.errors import AppError
from cache.errors import BrowserUnavailable, CacheError
from judges.errors import JudgeBug, JudgeError


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"assay {version('assay')}")
        raise typer.Exit


def program() -> typer.Typer:
    """The ``assay`` command with everything below it."""
    top = typer.Typer(
        name="assay",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    top.callback()(_options)
    top.command("demo")(demo.demo)
    top.command("serve")(serve.serve)
    top.command("worker")(serve.worker)
    top.command("submit")(submit.submit)
    top.command("evaluate")(evaluate.evaluate)
    top.add_typer(capture.program(), name="capture")
    top.add_typer(tasks.program(), name="tasks")
    top.command("jobs")(jobs.jobs)
    top.command("rejudge")(rejudge.rejudge)
    top.command("usage")(usage.usage)
    top.command("results")(jobs.results)
    top.command("summary")(summary.summary)
    top.command("compare")(compare.compare)
    top.command("gate")(gate.gate)
    top.add_typer(sensitivity.program(), name="sensitivity")
    top.add_typer(bundle.program(), name="bundle")
    top.add_typer(importing.program(), name="import")
    top.add_typer(exporting.program(), name="export")
    top.add_typer(cache.program(), name="cache")
    top.command("meta-eval")(meta_eval.meta_eval)
    top.add_typer(mind2web.program(), name="mind2web")
    top.add_typer(mm_mind2web.program(), name="mm-mind2web")
    top.command("conformance")(conformance.conformance)
    top.add_typer(keys.program(), name="keys")
    top.add_typer(providers.program(), name="providers")
    top.command("extension")(extension.extension)
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
    """Submit an agent's cited answers over HTTP, get back scores that anyone can re-check."""


def run(arguments: list[str] | None = None) -> None:
    """Run one command; always ends in SystemExit.

    An error that a user can cause or mend is one line on stderr and an exit code. Anything else is a fault of
    the program and keeps its traceback.
    """
    try:
        program()(args=arguments, prog_name="assay")
    except CliError as error:
        print_error(str(error), error.hint)
        raise SystemExit(error.exit_code) from None
    except JudgeBug as error:
        print_error(str(error), error.traceback)
        raise SystemExit(Exit.FAILED) from None
    except BrowserUnavailable as error:
        print_error(str(error), "`assay doctor` tries the browser and says what to do.")
        raise SystemExit(Exit.FAILED) from None
    except (AppError, JudgeError, CacheError, AnswersError) as error:
        print_error(str(error))
        raise SystemExit(Exit.FAILED) from None

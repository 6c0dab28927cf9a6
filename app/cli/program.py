"""All commands under one roof, and the border at which expected errors become one line and an exit code.

Kept cheap to import, since every ``assay --help`` pays for it: the commands import what they need when they run.
"""

from __future__ import annotations

import typer

from answers.errors import AnswersError
from app.cli import capture, demo, doctor, evaluate, jobs, serve, submit, tasks
from app.cli.console import print_error
from app.cli.errors import CliError, Exit
from app.errors import AppError
from cache.errors import CacheError
from judges.errors import JudgeBug, JudgeError

HELP = "Submit an agent's cited answers over HTTP, get back scores that anyone can re-check."


def program() -> typer.Typer:
    """The ``assay`` command with everything below it."""
    top = typer.Typer(
        name="assay",
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    top.command("demo")(demo.demo)
    top.command("serve")(serve.serve)
    top.command("worker")(serve.worker)
    top.command("submit")(submit.submit)
    top.command("evaluate")(evaluate.evaluate)
    top.command("capture")(capture.capture)
    top.add_typer(tasks.program(), name="tasks")
    top.command("jobs")(jobs.jobs)
    top.command("results")(jobs.results)
    top.command("summary")(jobs.summary)
    top.command("doctor")(doctor.doctor)
    return top


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
    except (AppError, JudgeError, CacheError, AnswersError) as error:
        print_error(str(error))
        raise SystemExit(Exit.FAILED) from None
    except KeyboardInterrupt:
        print_error("interrupted")
        raise SystemExit(Exit.INTERRUPTED) from None

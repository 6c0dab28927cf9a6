"""``assay admin doctor``: check everything that judging needs, one line per check, with a remedy for each problem."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape

from app.console import event_loop
from app.console.connection import JsonOption
from app.console.errors import Exit
from app.console.streams import print_json, stdout_console
from app.maintenance.doctor import Check, State, run_checks
from app.settings import load_settings

ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="M", help="Also detect the request format of this model's server, with two requests."
    ),
]


def doctor(model: ModelOption = None, as_json: JsonOption = False) -> None:
    """Check browser, database, API keys, tasks and disk."""
    console = stdout_console()

    def show(check: Check) -> None:
        if not as_json:
            console.print(_line(check), soft_wrap=True)

    checks = event_loop.run(run_checks(load_settings(), model, on_check=show))
    if as_json:
        print_json({"checks": [_as_json(check) for check in checks]})
    if any(check.state is State.FAILED for check in checks):
        raise typer.Exit(Exit.FAILED)


def _line(check: Check) -> str:
    """Format one check with markup, with its remedy, if any, on the next line."""
    style = {"ok": "green", "warning": "yellow", "failed": "bold red"}[check.state.value]
    line = f"[{style}]{check.state.value:<8}[/] {check.name:<9} {escape(check.detail)}"
    return f"{line}\n{' ' * 19}{escape(check.remedy)}" if check.remedy else line


def _as_json(check: Check) -> dict[str, Any]:
    fields = {"name": check.name, "state": check.state.value, "detail": check.detail, "remedy": check.remedy}
    return {**fields, "facts": dict(check.facts)} if check.facts else fields

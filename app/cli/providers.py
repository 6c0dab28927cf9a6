"""``assay admin providers``: pause and resume requests to a model provider, for all workers of a running server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from app.console.connection import URL, JsonOption, UrlOption, connect
from app.console.errors import WrongUsage
from app.console.streams import print_json, stdout_console
from app.console.tables import plain_table


def providers(
    pause: Annotated[
        str | None, typer.Option(metavar="NAME", help="Pause this provider. Running requests finish; jobs wait.")
    ] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="NAME", help="Resume this provider. Waiting jobs continue.")
    ] = None,
    reason: Annotated[str | None, typer.Option(help="With --pause: reason, shown with every job that waits.")] = None,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """List the model providers. Pause or resume one for all workers.

    For paused providers, the list shows by whom, since when and why. --pause and --resume require a key with the scope
    operator.
    """
    if pause is not None and resume is not None:
        raise WrongUsage("--pause cannot be used with --resume")
    if (pause is None) != (reason is None):
        raise WrongUsage("--reason requires --pause" if pause is None else "--pause requires --reason")
    with connect(url) as client:
        if pause is not None:
            _show(client.pause_provider(pause, {"reason": reason or ""}), as_json=as_json)
        elif resume is not None:
            _show(client.resume_provider(resume), as_json=as_json)
        else:
            _list(client.list_providers()["items"], as_json=as_json)


def _list(items: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json({"items": items})
        return
    table = plain_table("provider", "status", "by", "since", "reason")
    for provider in items:
        table.add_row(*(str(provider[key] or "") for key in ("provider", "status", "paused_by", "paused_at", "reason")))
    stdout_console().print(table)


def _show(body: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(dict(body))
        return
    stdout_console().print(f"{body['provider']} is {str(body['status']).replace('_', ' ')}", markup=False)

"""``assay admin providers``: pause and resume requests to a model provider, for all workers of a running server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from app.console.connection import URL, JsonOption, UrlOption, connect
from app.console.streams import print_json, stdout_console
from app.console.tables import plain_table

ProviderArgument = Annotated[str, typer.Argument(metavar="NAME", help="openai, azure or bedrock.")]


def program() -> typer.Typer:
    """Build the ``providers`` command with its subcommands."""
    group = typer.Typer(help="Pause and resume requests to a model provider.", no_args_is_help=True)
    group.command("list")(list_)
    group.command("pause")(pause)
    group.command("resume")(resume)
    return group


def list_(url: UrlOption = URL, as_json: JsonOption = False) -> None:
    """List the providers. For paused ones, show by whom, since when and why."""
    with connect(url) as client:
        body = client.list_providers()["items"]
    if as_json:
        print_json({"items": body})
        return
    table = plain_table("provider", "status", "by", "since", "reason")
    for provider in body:
        table.add_row(*(str(provider[key] or "") for key in ("provider", "status", "paused_by", "paused_at", "reason")))
    stdout_console().print(table)


def pause(
    provider: ProviderArgument,
    reason: Annotated[str, typer.Option(help="Reason, shown with every job that waits.")],
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """Pause a provider. Running requests finish; jobs that need it wait. Requires a key with the scope operator."""
    with connect(url) as client:
        _show(client.pause_provider(provider, {"reason": reason}), as_json=as_json)


def resume(provider: ProviderArgument, url: UrlOption = URL, as_json: JsonOption = False) -> None:
    """Resume a provider. Waiting jobs continue automatically. Requires a key with the scope operator."""
    with connect(url) as client:
        _show(client.resume_provider(provider), as_json=as_json)


def _show(body: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(dict(body))
        return
    stdout_console().print(f"{body['provider']} is {str(body['status']).replace('_', ' ')}", markup=False)

"""Succession of judges: the effect of replacing a judge by another model on stored results."""

from __future__ import annotations

from app.feature import Commands, Feature


def _commands(cli: Commands) -> None:
    import typer

    from app.features.succession.cli import succession

    group = typer.Typer(help="Replace a judge by another model.", no_args_is_help=True)
    group.command("succession")(succession)
    cli.program.add_typer(group, name="judges", rich_help_panel="Benchmarks")


FEATURE = Feature(name="succession", commands=_commands)

"""Succession of judges: the effect of replacing a judge by another model on stored results."""

from __future__ import annotations

from app.feature import Commands, Feature


def _commands(cli: Commands) -> None:
    from app.features.succession.cli import succession

    cli.program.command("succession", rich_help_panel="Benchmarks")(succession)


FEATURE = Feature(name="succession", commands=_commands)

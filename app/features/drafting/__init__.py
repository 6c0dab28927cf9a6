"""Drafting of tasks with a model: ``assay tasks draft``."""

from app.feature import Commands, Feature


def _commands(cli: Commands) -> None:
    from app.features.drafting.cli import draft

    cli.groups["tasks"].command("draft")(draft)


FEATURE = Feature(name="drafting", commands=_commands)

"""Mutation testing of judges: ``assay tasks test``."""

from app.feature import Commands, Feature


def _commands(cli: Commands) -> None:
    from app.features.mutation.cli import test_judge

    cli.groups["tasks"].command("test")(test_judge)


FEATURE = Feature(name="mutation", commands=_commands)

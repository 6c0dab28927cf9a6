"""Evidence bundles: results and everything they rest on in one file that anyone can verify and replay."""

from app.feature import Commands, Feature


def _commands(cli: Commands) -> None:
    from app.features.bundles.cli import program

    cli.program.add_typer(program(), name="bundle")


FEATURE = Feature(name="bundles", commands=_commands)

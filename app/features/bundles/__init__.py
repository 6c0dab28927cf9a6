"""Evidence bundles: one zip file with an agent's results and all their evidence, which anyone can verify and replay."""

from app.feature import Commands, Feature


def _commands(cli: Commands) -> None:
    from app.features.bundles.cli import program

    cli.program.add_typer(program(), name="bundle", rich_help_panel="Inspect")


FEATURE = Feature(name="bundles", commands=_commands)

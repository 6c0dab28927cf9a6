"""Meta-evaluation: agreement of judges with human labels."""

from app.feature import Commands, Feature


def _commands(cli: Commands) -> None:
    from app.features.meta_eval.cli import program

    cli.program.add_typer(program(), name="meta-eval")


FEATURE = Feature(name="meta_eval", commands=_commands)

"""Meta-evaluation: agreement of judges with human labels."""

from app.feature import Commands, Feature
from app.tabs import Tab


def _commands(cli: Commands) -> None:
    from app.features.meta_eval.cli import program

    cli.program.add_typer(program(), name="meta-eval", rich_help_panel="Benchmarks")


FEATURE = Feature(
    name="meta_eval",
    commands=_commands,
    routers=("api:router",),
    pages=("pages:router",),
    tabs=(Tab(name="benches", path="/benches", label="Judges"),),
)

"""Comparison of agents and runs, and the regression gate."""

from app.feature import Commands, Feature
from app.tabs import Tab


def _commands(cli: Commands) -> None:
    from app.features.comparison import cli_compare, cli_gate

    cli.program.command("compare", rich_help_panel="Inspect")(cli_compare.compare)
    cli.program.command("gate", rich_help_panel="Inspect")(cli_gate.gate)


FEATURE = Feature(
    name="comparison",
    commands=_commands,
    routers=("api:router",),
    pages=("pages:router",),
    tabs=(Tab(name="compare", path="/compare", label="Compare"),),
    examples="api:examples",
)

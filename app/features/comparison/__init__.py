"""Comparison of agents and runs, sensitivity analysis and the regression gate."""

from app.feature import Commands, Feature
from app.tabs import Tab


def _commands(cli: Commands) -> None:
    from app.features.comparison import cli_compare, cli_gate, cli_sensitivity

    cli.program.command("compare", rich_help_panel="Inspect")(cli_compare.compare)
    cli.program.command("gate", rich_help_panel="Inspect")(cli_gate.gate)
    cli.groups["results"].add_typer(cli_sensitivity.program(), name="sensitivity")


FEATURE = Feature(
    name="comparison",
    commands=_commands,
    routers=("api:router",),
    pages=("pages:router",),
    tabs=(Tab(name="compare", path="/compare", label="Compare"),),
    examples="api:examples",
)

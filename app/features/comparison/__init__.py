"""Comparison of agents and runs, sensitivity analysis and the regression gate."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.feature import Commands, Feature
from app.tabs import Tab

if TYPE_CHECKING:
    from fastapi import APIRouter


def _commands(cli: Commands) -> None:
    from app.features.comparison import cli_compare, cli_gate, cli_sensitivity

    cli.program.command("compare", rich_help_panel="Inspect")(cli_compare.compare)
    cli.program.command("gate", rich_help_panel="Inspect")(cli_gate.gate)
    cli.groups["results"].add_typer(cli_sensitivity.program(), name="sensitivity")


def _routers() -> "Sequence[APIRouter]":
    from app.features.comparison.api import router

    return (router,)


def _pages() -> "Sequence[APIRouter]":
    from app.features.comparison.pages import router

    return (router,)


def _examples() -> Mapping[str, Any]:
    from app.features.comparison.api import examples

    return examples()


FEATURE = Feature(
    name="comparison",
    commands=_commands,
    routers=_routers,
    pages=_pages,
    tabs=(Tab(name="compare", path="/compare", label="Compare"),),
    examples=_examples,
)

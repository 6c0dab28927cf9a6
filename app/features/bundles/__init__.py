"""Evidence bundles: one file with an agent's results and all their evidence, which anyone can verify and replay."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.feature import Commands, Feature

if TYPE_CHECKING:
    from fastapi import APIRouter

    from app.service import ResultFields


def _commands(cli: Commands) -> None:
    from app.features.bundles.cli import program

    cli.program.add_typer(program(), name="bundle", rich_help_panel="Inspect")


def _routers() -> "Sequence[APIRouter]":
    from app.features.bundles.api import router

    return (router,)


def _result_fields() -> "ResultFields":
    from app.features.bundles.api import result_fields

    return result_fields


FEATURE = Feature(
    name="bundles", tables=("bundle_roots",), commands=_commands, routers=_routers, result_fields=_result_fields
)

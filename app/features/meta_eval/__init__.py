"""Meta-evaluation: agreement of judges with human labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.feature import Commands, Feature
from app.tabs import Tab

if TYPE_CHECKING:
    from fastapi import APIRouter


def _commands(cli: Commands) -> None:
    from app.features.meta_eval.cli import program

    cli.program.add_typer(program(), name="meta-eval", rich_help_panel="Benchmarks")


def _routers() -> Sequence[APIRouter]:
    from app.features.meta_eval.api import router

    return (router,)


def _pages() -> Sequence[APIRouter]:
    from app.features.meta_eval.pages import router

    return (router,)


FEATURE = Feature(
    name="meta_eval",
    commands=_commands,
    routers=_routers,
    pages=_pages,
    tabs=(Tab(name="benches", path="/benches", label="Judges"),),
)

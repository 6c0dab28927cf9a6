"""Rescoring: judge stored answers again after a change of the rubric, and compare the scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.feature import Commands, Feature
from app.tabs import Tab

if TYPE_CHECKING:
    from fastapi import APIRouter


def _commands(cli: Commands) -> None:
    from app.features.rescore.cli import rescore

    cli.groups["results"].command("rescore")(rescore)


def _routers() -> Sequence[APIRouter]:
    from app.features.rescore.api import router

    return (router,)


def _pages() -> Sequence[APIRouter]:
    from app.features.rescore.pages import router

    return (router,)


FEATURE = Feature(
    name="rescore",
    commands=_commands,
    routers=_routers,
    pages=_pages,
    tabs=(Tab(name="rescores", path="/rescores", label="Rescores"),),
)

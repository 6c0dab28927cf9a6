"""Browser extension for pages that only a signed-in person can open, and its pairing with the service."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from app.feature import Commands, Feature, TokenCheck

if TYPE_CHECKING:
    from fastapi import APIRouter


def _commands(cli: Commands) -> None:
    from app.features.extension.cli import extension

    cli.groups["admin"].command("extension")(extension)


def _routers() -> "Sequence[APIRouter]":
    from app.features.extension import api, pairing

    return (pairing.router, api.router)


def _pages() -> "Sequence[APIRouter]":
    from app.features.extension.pages import router

    return (router,)


def _token_checks() -> Mapping[str, TokenCheck]:
    from app.api.middleware import EXTENSION_PATHS
    from app.features.extension.pairing import authenticate_browser

    return {EXTENSION_PATHS: authenticate_browser}


FEATURE = Feature(
    name="extension",
    commands=_commands,
    tables=("pairings",),
    routers=_routers,
    pages=_pages,
    token_checks=_token_checks,
)

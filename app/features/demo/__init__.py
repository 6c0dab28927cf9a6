"""Loading of the demo into a running service, for its first-run page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.feature import Feature

if TYPE_CHECKING:
    from fastapi import APIRouter


def _routers() -> Sequence[APIRouter]:
    from app.features.demo.api import router

    return (router,)


def _pages() -> Sequence[APIRouter]:
    from app.features.demo.pages import router

    return (router,)


FEATURE = Feature(name="demo", routers=_routers, pages=_pages)

"""Rewards for reinforcement learning: verification of answers over HTTP, and adapters for trainers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.feature import Feature

if TYPE_CHECKING:
    from fastapi import APIRouter

    from app.settings import SettingsPart


def _settings() -> type[SettingsPart]:
    from app.features.rewards.settings import RewardSettings

    return RewardSettings


def _routers() -> Sequence[APIRouter]:
    from app.features.rewards.api import router

    return (router,)


FEATURE = Feature(name="rewards", settings=_settings, routers=_routers)

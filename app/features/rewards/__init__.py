"""Rewards for reinforcement learning: verification of answers over HTTP."""

from app.feature import Feature

FEATURE = Feature(name="rewards", settings="settings:RewardSettings", routers=("api:router",))

"""Settings of verifications."""

from __future__ import annotations

from pydantic import Field

from app.settings import SettingsPart


class RewardSettings(SettingsPart):
    """Settings, documented in ``docs/operations.md``."""

    max_verifications: int = Field(512, ge=1, le=10_000)
    """Maximum concurrent verifications. Further ones wait; the wait counts towards their deadline."""
    reward_keep_s: float = Field(3600.0, ge=0, le=31_536_000)
    """Time for which the response to a verification is kept for equal requests. 0: not kept."""

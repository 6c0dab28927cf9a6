"""Settings of suite runs over HTTP."""

from __future__ import annotations

from pydantic import Field

from app.settings import Folders, SettingsPart


class SuiteSettings(SettingsPart):
    """Settings, documented in ``docs/operations.md``."""

    suite_data: Folders = ()
    """Folders of benchmark data that suite runs over HTTP may read. Empty: no suite runs over HTTP."""
    suite_deadline_s: float = Field(86_400.0, gt=0)
    """Time limit for one suite run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.errors import InvalidSettings
from app.features.suites.settings import SuiteSettings
from app.settings import Settings, load_settings


def test_settings_of_a_feature_are_read_with_those_of_the_core(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ASSAY_SUITE_DATA", "/data/mind2web:/data/mm")
    settings = load_settings(suite_deadline_s=60)
    declared = settings.of(SuiteSettings)
    assert declared.suite_data == (Path("/data/mind2web"), Path("/data/mm"))
    assert declared.suite_deadline_s == 60
    assert settings.max_tasks == Settings.model_fields["max_tasks"].default


def test_invalid_settings_of_core_and_feature_are_rejected_together(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ASSAY_SUITE_DEADLINE_S", "0")
    monkeypatch.setenv("ASSAY_MAX_TASKS", "0")
    with pytest.raises(InvalidSettings) as rejected:
        load_settings()
    assert "ASSAY_SUITE_DEADLINE_S" in str(rejected.value)
    assert "ASSAY_MAX_TASKS" in str(rejected.value)


def test_empty_setting_of_a_feature_means_its_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ASSAY_SUITE_DEADLINE_S", "")
    assert load_settings().of(SuiteSettings).suite_deadline_s == SuiteSettings.model_fields["suite_deadline_s"].default


def test_settings_without_the_feature_name_what_is_missing():
    core: Any = Settings
    with pytest.raises(TypeError, match="SuiteSettings is not part of the settings"):
        core().of(SuiteSettings)

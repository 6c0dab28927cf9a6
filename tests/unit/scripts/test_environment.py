"""Environment that the set-up script creates: locked packages, and machines that lack a tool."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from bootstrap.commands import Commands
from bootstrap.environment import Environment
from bootstrap.errors import SetupFailed
from bootstrap.system_packages import SystemPackages


class NoPackages(SystemPackages):
    """Package manager that may not install anything."""

    @property
    def usable(self) -> bool:
        return False

    @property
    def has_apt_get(self) -> bool:
        return True


def test_missing_ensurepip_without_rights_names_the_package_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    commands = Commands(tmp_path, tmp_path / "logs", lambda _: None)
    machine = Environment(tmp_path, commands, NoPackages(commands), has_module=lambda name: False)
    with pytest.raises(SetupFailed) as stopped:
        machine.create()
    assert f"apt-get install -y python{sys.version_info.major}.{sys.version_info.minor}-venv" in stopped.value.remedy
    assert "ensurepip" in stopped.value.what

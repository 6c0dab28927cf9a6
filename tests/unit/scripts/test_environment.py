"""Environment that the set-up script creates: locked packages, and machines that lack a tool."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from bootstrap.commands import Commands
from bootstrap.environment import Environment
from bootstrap.errors import SetupFailed
from bootstrap.session import Session
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


def test_linked_environment_is_refused_and_left_as_it_is(tmp_path: Path):
    (tmp_path / "shared").mkdir()
    (tmp_path / ".venv").symlink_to("shared")
    with pytest.raises(SetupFailed, match="symbolic link to shared") as stopped:
        Session(tmp_path, print).prepare("demo", with_browser=False)
    assert "rm " in stopped.value.remedy
    assert list((tmp_path / "shared").iterdir()) == []

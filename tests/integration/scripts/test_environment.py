"""Virtual environments created by the set-up."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from bootstrap.commands import Commands
from bootstrap.environment import Environment
from bootstrap.system_packages import SystemPackages

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ensurepip") is None, reason="this Python makes no environments without apt-get"
)


@pytest.fixture
def machine(tmp_path: Path) -> Environment:
    commands = Commands(tmp_path, tmp_path / ".venv" / "setup" / "logs", lambda _: None)
    return Environment(tmp_path, commands, SystemPackages(commands))


def test_new_environment_replaces_old_files_and_is_usable_until_it_is_moved(machine: Environment):
    stale = machine.folder / "lib" / "stale.py"
    stale.parent.mkdir(parents=True)
    stale.touch()
    assert not machine.is_usable()
    machine.create()
    assert machine.is_usable()
    assert not stale.exists()
    activate = machine.folder / "bin" / "activate"
    activate.write_text(activate.read_text("utf-8").replace(str(machine.folder), "/some/other/place"), "utf-8")
    assert not machine.is_usable()

"""Debian and Ubuntu packages: installed where we may, named where we may not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from bootstrap.commands import Commands, Finished

UPDATE_TIMEOUT_S = 300.0
INSTALL_TIMEOUT_S = 900.0


class SystemPackages:
    """apt-get, run at most as far as its user is allowed to."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._updated = False

    @property
    def usable(self) -> bool:
        """Whether this process may install packages: apt-get is there and we are root."""
        return self.present and os.geteuid() == 0

    @property
    def present(self) -> bool:
        return shutil.which("apt-get") is not None

    def remedy(self, packages: Sequence[str]) -> str:
        """What a person types to get ``packages``."""
        if self.present:
            return f"sudo apt-get update && sudo apt-get install -y {' '.join(packages)}"
        return f"install {' and '.join(packages)} with this system's package manager"

    def install(self, name: str, packages: Sequence[str]) -> Finished:
        """Install ``packages``; ``name`` names the log. A bare system has no package lists: they are fetched first."""
        env = {"DEBIAN_FRONTEND": "noninteractive"}
        if not self._updated:
            updated = self._commands.run("apt-update", ["apt-get", "update"], timeout_s=UPDATE_TIMEOUT_S, env=env)
            self._updated = updated.ok
        command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
        return self._commands.run(name, command, timeout_s=INSTALL_TIMEOUT_S, env=env)

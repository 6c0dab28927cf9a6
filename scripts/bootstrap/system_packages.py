"""System packages of Debian and Ubuntu."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from bootstrap.commands import CommandResult, Commands

UPDATE_TIMEOUT_S = 300.0
INSTALL_TIMEOUT_S = 900.0


class SystemPackages:
    """Installs packages with apt-get if the process runs as root, otherwise only names the command."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._updated = False

    @property
    def usable(self) -> bool:
        """Whether this process can install packages: apt-get exists and the user is root."""
        return self.has_apt_get and os.geteuid() == 0

    @property
    def has_apt_get(self) -> bool:
        return shutil.which("apt-get") is not None

    def remedy(self, packages: Sequence[str]) -> str:
        """Return the instruction for installing ``packages``."""
        if self.has_apt_get:
            return f"sudo apt-get update && sudo apt-get install -y {' '.join(packages)}"
        return f"install {' and '.join(packages)} with this system's package manager"

    def install(self, name: str, packages: Sequence[str]) -> CommandResult:
        """Install ``packages``, after ``apt-get update`` because a minimal system has no package lists.

        ``name`` is the name of the log.
        """
        env = {"DEBIAN_FRONTEND": "noninteractive"}
        if not self._updated:
            updated = self._commands.run("apt-update", ["apt-get", "update"], timeout_s=UPDATE_TIMEOUT_S, env=env)
            self._updated = updated.ok
        command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
        return self._commands.run(name, command, timeout_s=INSTALL_TIMEOUT_S, env=env)

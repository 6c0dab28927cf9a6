"""Choice of a browser by the set-up script, in the order of the contract."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from bootstrap.browser import Browser
from bootstrap.commands import CommandResult, Commands
from bootstrap.errors import SetupFailed
from bootstrap.system_packages import SystemPackages

from cache.backends.browser_search import DOWNLOAD_FOLDERS, find_browser

pytestmark = pytest.mark.slow

WORKING = f"#!{sys.executable}\nprint('<html><head></head><body><p>assay 42</p></body></html>')\n"
BROKEN = "#!/bin/sh\necho 'error while loading shared libraries: libnss3.so' >&2\nexit 127\n"
ONLY_A_VERSION = "#!/bin/sh\necho 'Chromium 1.2.3'\n"


# The fakes have names that no Linux package has, because a start script is resolved to the program of its name.


class Packages(SystemPackages):
    """Package manager that installs a browser into a folder, or is not permitted to."""

    def __init__(self, commands: Commands, folder: Path, *, allowed: bool) -> None:
        super().__init__(commands)
        self._folder = folder
        self._allowed = allowed
        self.installed: list[str] = []

    @property
    def usable(self) -> bool:
        return self._allowed

    @property
    def has_apt_get(self) -> bool:
        return True

    def install(self, name, packages) -> CommandResult:
        self.installed += packages
        script(self._folder / "Chromium", WORKING)
        return CommandResult(True, self._folder, "")


class Machine:
    """Machine whose only programs are in its ``bin``. ``patchright`` is the script that runs as patchright."""

    def __init__(self, root: Path, *, allowed: bool = False, patchright: str = "#!/bin/sh\nexit 1\n") -> None:
        self.bin = root / "bin"
        self.bin.mkdir()
        self.messages: list[str] = []
        commands = Commands(root, root / "logs", self.messages.append)
        self.packages = Packages(commands, self.bin, allowed=allowed)
        python = script(root / "python", patchright)
        self.browser = Browser(python, commands, self.packages, self.messages.append, folders=[self.bin])


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSAY_BROWSER", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "elsewhere"))


@pytest.mark.parametrize("text", [BROKEN, ONLY_A_VERSION])
def test_browser_that_opens_no_page_is_skipped(tmp_path: Path, text: str):
    machine = Machine(tmp_path)
    script(machine.bin / "headless_shell", text)
    script(machine.bin / "Google Chrome", WORKING)
    assert machine.browser.find() == str(machine.bin / "Google Chrome")


def test_browser_from_patchright_is_used_before_system_packages_and_found_by_the_service(tmp_path: Path):
    working = script(tmp_path / "working", WORKING)
    folder = "$PLAYWRIGHT_BROWSERS_PATH/chromium_headless_shell-1/chrome-linux"
    download = f"#!/bin/sh\nmkdir -p {folder} && cp {working} {folder}/chrome-headless-shell\n"
    machine = Machine(tmp_path, allowed=True, patchright=download)
    found = machine.browser.find()
    assert machine.packages.installed == []
    searched = [Path.home() / folder for folder in DOWNLOAD_FOLDERS]
    assert found == str(find_browser(folders=(), downloads=searched).shell)


def test_error_without_a_browser_or_rights_names_the_remedy(tmp_path: Path):
    with pytest.raises(SetupFailed) as stopped:
        Machine(tmp_path).browser.find()
    assert "sudo apt-get update && sudo apt-get install -y chromium" in stopped.value.remedy
    assert "ASSAY_BROWSER" in stopped.value.remedy

"""Search for a working Chromium, or installation of one.

Order: ASSAY_BROWSER, an installed Chromium or Chrome, a download by patchright, the system package. The service
searches with the same module (``cache.backends.browser_search``), so both find the same browser.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bootstrap.commands import Commands
from bootstrap.errors import SetupFailed
from bootstrap.system_packages import SystemPackages
from cache.backends.browser_search import DOWNLOAD_FOLDERS, SYSTEM_FOLDERS, FoundBrowser, find_browser

DEBIAN_PACKAGES = ("chromium", "chromium-headless-shell", "fonts-liberation")

PROBE = "data:text/html,<p></p><script>document.querySelector('p').textContent = 'assay ' + 6 * 7</script>"
PROBE_ANSWER = "assay 42"
PROBE_TIMEOUT_S = 45.0
DOWNLOAD_TIMEOUT_S = 600.0


class Browser:
    """Searches ``folders`` for a browser and installs one if none starts."""

    def __init__(
        self,
        python: Path,
        commands: Commands,
        packages: SystemPackages,
        say: Callable[[str], None],
        folders: Sequence[Path] = SYSTEM_FOLDERS,
    ) -> None:
        self._python = python
        self._commands = commands
        self._packages = packages
        self._say = say
        self._folders = folders
        self._downloads = [Path.home() / folder for folder in DOWNLOAD_FOLDERS]

    def find(self) -> str:
        """Return the path of a browser that starts.

        Raises:
            SetupFailed: the browser in ASSAY_BROWSER does not start, or no browser starts and none could be installed.
        """
        chosen = os.environ.get("ASSAY_BROWSER")
        if chosen:
            if self._starts(chosen):
                return chosen
            raise SetupFailed(
                f"ASSAY_BROWSER={chosen} does not start",
                remedy="unset ASSAY_BROWSER, or set it to the path of a Chromium",
            )
        for found in (self._installed, self._from_patchright, self._from_system_packages):
            path = next((candidate for candidate in found() if self._starts(candidate)), None)
            if path is not None:
                return path
        apt = f" (for example: {self._packages.remedy(DEBIAN_PACKAGES)})" if self._packages.has_apt_get else ""
        raise SetupFailed(
            "no Chromium starts on this machine and none could be installed; assay needs one to capture pages",
            remedy=f"install Google Chrome or Chromium{apt}, or set ASSAY_BROWSER to the path of one",
            log=next(
                (log for log in map(self._commands.log_path, ("browser-probe", "browser-download")) if log.exists()),
                None,
            ),
        )

    def _installed(self) -> Iterator[str]:
        return _programs(find_browser(folders=self._folders))

    def _from_patchright(self) -> Iterator[str]:
        """Yield browsers from patchright, downloading one if necessary. As root, also install missing libraries."""
        yield from self._downloaded()
        self._say("      no installed browser starts; downloading one with patchright")
        if not self._run_patchright("browser-download", "install", "--no-progress", "chromium"):
            return
        yield from self._downloaded()
        if self._packages.usable:
            self._run_patchright("browser-libraries", "install-deps", "chromium")
            yield from self._downloaded()

    def _run_patchright(self, name: str, *arguments: str) -> bool:
        """Run patchright and return whether it succeeded. It downloads to a folder that the service searches too."""
        command = [str(self._python), "-m", "patchright", *arguments]
        env = {"PLAYWRIGHT_BROWSERS_PATH": str(self._downloads[0])}
        return self._commands.run(name, command, timeout_s=DOWNLOAD_TIMEOUT_S, env=env).ok

    def _downloaded(self) -> Iterator[str]:
        return _programs(find_browser(folders=(), downloads=self._downloads))

    def _from_system_packages(self) -> Iterator[str]:
        if not self._packages.usable:
            return
        self._say(f"      installing the system packages {' '.join(DEBIAN_PACKAGES)}")
        self._packages.install("browser-packages", DEBIAN_PACKAGES)
        yield from self._installed()

    def _starts(self, path: str) -> bool:
        """Return whether the browser loads a page and runs its script. ``--version`` would not prove that."""
        with tempfile.TemporaryDirectory(prefix="assay-probe-", ignore_cleanup_errors=True) as profile:
            command = [
                path,
                "--headless",
                "--disable-gpu",
                "--no-first-run",
                f"--user-data-dir={profile}",
                "--no-sandbox",  # the page is trusted; the service itself uses the sandbox
                "--dump-dom",
                PROBE,
            ]
            done = self._commands.run("browser-probe", command, timeout_s=PROBE_TIMEOUT_S)
            return done.ok and PROBE_ANSWER in done.log.read_text("utf-8", "replace")


def _programs(found: FoundBrowser) -> Iterator[str]:
    yield from (str(path) for path in (found.shell, found.full) if path is not None)

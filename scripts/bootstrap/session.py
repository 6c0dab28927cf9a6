"""One run of the set-up program: steps, their order, and the record for the next run."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bootstrap import stamp as stamps
from bootstrap.browser import Browser
from bootstrap.commands import Commands
from bootstrap.environment import BOOTSTRAP_LOCK, Environment
from bootstrap.errors import SetupFailed
from bootstrap.stamp import Stamp
from bootstrap.system_packages import SystemPackages

LOCKS = {"demo": "requirements.lock", "all": "requirements-all.lock", "test": "requirements-dev.lock"}
"""Lock of each profile. Each one contains the packages of those before it."""
INPUTS = ("pyproject.toml", BOOTSTRAP_LOCK, *LOCKS.values())


class Session:
    """Set-up of the checkout at ``root``. ``say`` receives progress lines."""

    def __init__(self, root: Path, say: Callable[[str], None]) -> None:
        self._say = say
        self._stamp_path = root / ".venv" / "setup" / "stamp.json"
        self._root = root
        self._commands = Commands(root, root / ".venv" / "setup" / "logs", say)
        packages = SystemPackages(self._commands)
        self._environment = Environment(root, self._commands, packages)
        self._browser = Browser(self._environment.python, self._commands, packages, say)

    def prepare(self, profile: str, *, with_browser: bool) -> None:
        """Install ``profile`` (a name in ``LOCKS``) and, if ``with_browser``, find a browser.

        Raises:
            SetupFailed: a step failed.
        """
        self._environment.require_own_folder()
        started = time.monotonic()
        inputs = stamps.fingerprint(self._root, INPUTS, f"{sys.version} {sys.base_prefix}")
        with self._exclusive_lock():
            stamp = self._if_current(stamps.load(self._stamp_path), inputs)
            due = stamp is None or not stamp.covers(profile)
            if due:
                stamp = self._install(profile, inputs, stamp)
            assert stamp is not None  # noqa: S101 - _install returns a stamp
            wish = os.environ.get("ASSAY_BROWSER")
            if with_browser and not stamp.has_browser(wish):
                due = True
                with self._step("Searching for a working browser") as result:
                    path = self._browser.find()
                    result.append(path)
                stamp = stamp.with_browser(path, wish)
                stamps.save(self._stamp_path, stamp)
        seconds = time.monotonic() - started
        self._say(f"Set-up {'done' if due else 'is up to date'} ({seconds:.1f} s).")

    def _if_current(self, stamp: Stamp | None, inputs: str) -> Stamp | None:
        if stamp is not None and stamp.inputs == inputs and self._environment.python.exists():
            return stamp
        return None

    def _install(self, profile: str, inputs: str, stamp: Stamp | None) -> Stamp:
        with self._step(f"Python environment in {self._environment.folder}") as result:
            if self._environment.is_usable():
                result.append("kept")
            else:
                self._environment.create()
        lock = LOCKS[profile]
        with self._step(f"Packages of {lock}, verified by hash") as result:
            result.append(f"with {self._environment.install(lock)}")
        profiles = {profile, *(stamp.profiles if stamp else ())}
        fresh = Stamp(inputs, tuple(sorted(profiles)), *((stamp.browser, stamp.wish) if stamp else ()))
        stamps.save(self._stamp_path, fresh)
        return fresh

    @contextmanager
    def _step(self, title: str) -> Iterator[list[str]]:
        """Print the title of a step, then its duration and what the step appends to the list."""
        self._say(f"  {title} ...")
        started = time.monotonic()
        result: list[str] = []
        try:
            yield result
        except SetupFailed:
            self._say(f"      failed after {time.monotonic() - started:.1f} s")
            raise
        self._say(f"      {' '.join(['done', *result])} ({time.monotonic() - started:.1f} s)")

    @contextmanager
    def _exclusive_lock(self) -> Iterator[None]:
        """Hold an exclusive lock on the checkout, waiting for another set-up if necessary."""
        folder = os.open(self._root, os.O_RDONLY)
        try:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._say("  Another set-up is running in this checkout; waiting ...")
                fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

"""Availability of the browser sandbox on this machine. Without one, tests open their own pages unsandboxed.

A default Docker container and a chroot have no sandbox. The service still refuses to capture there, which other tests
check.
"""

from __future__ import annotations

import asyncio
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from structlog.testing import capture_logs

from cache.backends.browser_search import DOWNLOAD_FOLDERS, find_browser
from cache.backends.patchright import BrowserCapturer
from cache.egress.proxy import EgressProxy
from cache.errors import BrowserUnavailable, SandboxUnavailable


@cache
def installed_browser() -> Path | None:
    """Return the browser that tests drive, preferably the headless shell; None if there is none."""
    found = find_browser(downloads=[Path.home() / folder for folder in DOWNLOAD_FOLDERS])
    return found.shell or found.full


@cache
def sandbox_problem() -> str:
    """Return why no sandbox is available, or an empty text if one is. The first call starts a browser for half a
    second.

    Do not make the first call inside an event loop: ``tests/conftest.py`` makes it before any test marked
    ``browser``.
    """
    program = installed_browser()
    if program is None:
        return ""
    with capture_logs():  # suppress log output that belongs to no test
        return asyncio.run(_complaint(program))


def is_sandbox_missing() -> bool:
    """Return the value of ``allow_unsandboxed`` and ``browser_unsandboxed`` in tests: True only without a sandbox."""
    return bool(sandbox_problem())


def sandbox_variables() -> dict[str, str]:
    """Return the same setting as environment variables; empty if a sandbox is available."""
    return {"ASSAY_BROWSER_UNSANDBOXED": "true"} if is_sandbox_missing() else {}


@contextmanager
def browser_without_sandbox(browser: Path) -> Iterator[Path]:
    """Create a program that behaves like this browser on a machine without a sandbox, in a folder readable for
    ``nobody``.
    """
    folder = Path(tempfile.mkdtemp(prefix="assay-no-sandbox-"))
    folder.chmod(0o755)
    program = folder / "no-sandbox"
    program.write_text(
        f"""#!/bin/sh
case " $* " in *" --no-sandbox "*) exec {shlex.quote(str(browser))} "$@" ;; esac
echo "No usable sandbox!" >&2
exit 1
"""
    )
    program.chmod(0o755)
    try:
        yield program
    finally:
        shutil.rmtree(folder)


async def _complaint(program: Path) -> str:
    async with EgressProxy() as proxy:
        capturer = BrowserCapturer(program, proxy, semaphore=asyncio.Semaphore(1))
        try:
            await capturer.start()
        except SandboxUnavailable as refused:
            return str(refused)
        except BrowserUnavailable:
            return ""  # it does not start at all, which the tests that need it report
        finally:
            await capturer.aclose()
    return ""

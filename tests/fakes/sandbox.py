"""Whether browsers get their sandbox on this machine. Where they do not, tests open pages of their own without one.

A default Docker container and a chroot are such machines. The service still refuses there, and tests see to that too.
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

from cache.backends.browser_search import find_browser
from cache.backends.patchright import BrowserCapturer
from cache.egress.proxy import EgressProxy
from cache.errors import BrowserUnavailable, SandboxUnavailable


@cache
def installed_browser() -> Path | None:
    """The browser that tests drive, the small one where there is one; None where there is none."""
    found = find_browser(downloads=(Path.home() / ".cache" / "ms-playwright",))
    return found.shell or found.full


@cache
def sandbox_problem() -> str:
    """Why no browser gets a sandbox here; empty where it does. Starts one the first time, for half a second.

    Not to be asked first inside an event loop: ``tests/conftest.py`` asks before any test marked ``browser`` runs.
    """
    program = installed_browser()
    if program is None:
        return ""
    with capture_logs():  # this is no test whose output anybody reads
        return asyncio.run(_complaint(program))


def unsandboxed_here() -> bool:
    """What ``allow_unsandboxed`` and ``browser_unsandboxed`` are in tests: True only where there is no sandbox."""
    return bool(sandbox_problem())


def sandbox_variables() -> dict[str, str]:
    """The same for the environment of a program of ours: nothing where there is a sandbox."""
    return {"ASSAY_BROWSER_UNSANDBOXED": "true"} if unsandboxed_here() else {}


@contextmanager
def browser_without_sandbox(browser: Path) -> Iterator[Path]:
    """A program that acts as this browser does on a machine without a sandbox, in a folder ``nobody`` may enter."""
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
    async with EgressProxy() as guard:
        capturer = BrowserCapturer(program, guard, semaphore=asyncio.Semaphore(1))
        try:
            await capturer.start()
        except SandboxUnavailable as refused:
            return str(refused)
        except BrowserUnavailable:
            return ""  # it does not start at all, which the tests that need it will say
        finally:
            await capturer.aclose()
    return ""

"""Set-up of a checkout: environment, packages, browser. ``python3 scripts/setup.py demo|all|test [--no-browser]``.

Needs only the system's Python and its standard library. Skips steps that are already done. If a step fails, prints the
cause and the command that fixes it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

OLDEST = (3, 11)
NEWER = ("python3.14", "python3.13", "python3.12", "python3.11")


def main() -> int:
    if sys.version_info < OLDEST:
        return restart_newer()
    root = Path(__file__).resolve().parent.parent
    sys.path.append(str(root))  # for cache.backends.browser_search
    from bootstrap.commands import say  # these modules do not parse on older Pythons
    from bootstrap.errors import SetupFailed
    from bootstrap.session import Session

    parser = argparse.ArgumentParser(description="Install the environment, packages and browser for this checkout.")
    parser.add_argument(
        "profile",
        choices=("demo", "all", "test"),
        help="demo: packages to run the service; all: also the extras; test: also packages for the tests",
    )
    parser.add_argument("--no-browser", action="store_true", help="do not search for or install a browser")
    arguments = parser.parse_args()
    try:
        Session(root, say).prepare(arguments.profile, with_browser=not arguments.no_browser)
    except SetupFailed as failure:
        say(f"\nSet-up failed: {failure.what}\n  what to do: {failure.remedy}")
        if failure.log is not None:
            say(f"  log: {failure.log}")
        return 1
    except KeyboardInterrupt:
        say("\nSet-up interrupted. Run the same command to resume.")
        return 130
    return 0


def restart_newer() -> int:
    """Restart with a newer Python if PATH contains one of ``NEWER``; otherwise print what to do and return 1."""
    for name in NEWER:
        path = shutil.which(name)
        if path:
            os.execv(path, [path, *sys.argv])  # noqa: S606 - runs this script with another interpreter
    found = ".".join(str(part) for part in sys.version_info[:3])
    print(f"Set-up failed: Python {found} is too old; version 3.11 or newer is required")
    print("  what to do: install it with the package manager of this system, or set its path: make PYTHON=PATH ...")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())

"""Set-up of a checkout: environment, packages, browser. ``python3 scripts/setup.py demo|test [--no-browser]``.

Runs on the system's Python and its standard library. What is done already is skipped; a step that fails says what is
missing and what to type.
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
    sys.path.append(str(root))  # the program's own knowledge of where browsers are
    from bootstrap.commands import say  # older Pythons could not even read these modules
    from bootstrap.errors import SetupFailed
    from bootstrap.session import Session

    parser = argparse.ArgumentParser(description="Make this checkout ready to run.")
    parser.add_argument("profile", choices=("demo", "test"), help="what is going to be run")
    parser.add_argument("--no-browser", action="store_true", help="do not look for a browser")
    arguments = parser.parse_args()
    try:
        Session(root, say).prepare(arguments.profile, with_browser=not arguments.no_browser)
    except SetupFailed as failure:
        say(f"\nset-up stopped: {failure.what}\n  what to do: {failure.remedy}")
        if failure.log is not None:
            say(f"  log: {failure.log}")
        return 1
    except KeyboardInterrupt:
        say("\nset-up interrupted; the same command goes on where it stopped")
        return 130
    return 0


def restart_newer() -> int:
    """Go on with a newer Python, if one is installed under its own name."""
    for name in NEWER:
        path = shutil.which(name)
        if path:
            os.execv(path, [path, *sys.argv])  # noqa: S606 - the same program on another interpreter
    found = ".".join(str(part) for part in sys.version_info[:3])
    print(f"set-up stopped: this is Python {found}, and 3.11 or newer is needed")
    print("  what to do: install it (sudo apt-get install -y python3.11) or name one: make PYTHON=/path/to/python3 ...")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())

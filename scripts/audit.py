"""Known weak spots in what the locks pin. ``python scripts/audit.py [--osv-url URL] [LOCK ...]``.

Asks a public database about every pinned version, so it needs the internet. Ends with 0 when nothing is known, 1 when a
pinned version has a known weak spot, 2 when nobody could be asked: silence is not a clean bill.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-bootstrap.lock")
CLEAN, FOUND, NOT_ASKED = 0, 1, 2
DEADLINE_S = 900
ANSWER_S = 15


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Look for known vulnerabilities in the locked packages.")
    parser.add_argument("locks", nargs="*", type=Path, metavar="LOCK", help="default: the locks of this checkout")
    parser.add_argument("--osv-url", help="ask this OSV service in place of the package index")
    given = parser.parse_args(arguments)
    root = Path(__file__).resolve().parent.parent
    worst = CLEAN
    for lock in given.locks or [root / name for name in LOCKS]:
        worst = max(worst, audited(lock, given.osv_url))
    return worst


def audited(lock: Path, osv_url: str | None) -> int:
    """Look up one lock and say what was found; returns the code to end with."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "audit.json"
        command = [str(Path(sys.executable).with_name("pip-audit")), "--requirement", str(lock), "--require-hashes"]
        command += ["--disable-pip", "--strict", "--progress-spinner", "off", "--timeout", str(ANSWER_S)]
        command += ["--format", "json", "--output", str(out)]
        command += [] if osv_url is None else ["--vulnerability-service", "osv", "--osv-url", osv_url]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)  # noqa: S603
        except FileNotFoundError:
            return not_asked(lock, "pip-audit is not installed: `make setup-test` brings it")
        except subprocess.TimeoutExpired:
            return not_asked(lock, f"no answer within {DEADLINE_S} s")
        try:
            found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            said = ended.stderr.strip().splitlines() or ["it says nothing"]
            return not_asked(lock, said[-1])
    packages = found["dependencies"]
    weak = [package for package in packages if package.get("vulns")]
    for package in weak:
        for each in package["vulns"]:
            fixed = ", ".join(each.get("fix_versions") or ()) or "no version yet"
            print(f"{lock.name}: {package['name']} {package['version']}: {each['id']}, mended in {fixed}")
    print(f"{lock.name}: {len(packages)} packages, {len(weak)} with known weak spots")
    return FOUND if weak else CLEAN


def not_asked(lock: Path, why: str) -> int:
    print(
        f"{lock.name}: NOT audited, so nothing is known: {why}\n"
        "  The audit asks a public database of vulnerabilities: run it where the internet is, as CI does.",
        file=sys.stderr,
    )
    return NOT_ASKED


if __name__ == "__main__":
    sys.exit(main())

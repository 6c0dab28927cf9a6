"""Vulnerability audit of the locked packages: ``python scripts/audit.py [--osv-url URL] [LOCK ...]``.

Queries a public database for every locked version, so it needs the internet. Exit codes: 0 no known vulnerability, 1 at
least one known vulnerability, 2 the database could not be queried.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LOCKS = ("requirements-all.lock", "requirements-dev.lock", "requirements-bootstrap.lock")
CLEAN, VULNERABLE, NOT_AUDITED = 0, 1, 2
AUDIT_TIMEOUT_S = 900
REQUEST_TIMEOUT_S = 15


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check the locked packages for known vulnerabilities.")
    parser.add_argument(
        "locks",
        nargs="*",
        type=Path,
        metavar="LOCK",
        help="lock files to check (default: the lock files of this checkout)",
    )
    parser.add_argument("--osv-url", help="address of an OSV service to query instead of the package index")
    given = parser.parse_args(arguments)
    root = Path(__file__).resolve().parent.parent
    worst = CLEAN
    for lock in given.locks or [root / name for name in LOCKS]:
        worst = max(worst, audit(lock, given.osv_url))
    return worst


def audit(lock: Path, osv_url: str | None) -> int:
    """Audit one lock file, print the findings and return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "audit.json"
        command = [str(Path(sys.executable).with_name("pip-audit")), "--requirement", str(lock), "--require-hashes"]
        command += ["--disable-pip", "--strict", "--progress-spinner", "off", "--timeout", str(REQUEST_TIMEOUT_S)]
        command += ["--format", "json", "--output", str(out)]
        command += [] if osv_url is None else ["--vulnerability-service", "osv", "--osv-url", osv_url]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=AUDIT_TIMEOUT_S, check=False)  # noqa: S603
        except FileNotFoundError:
            return report_failure(lock, "pip-audit is not installed; run `make setup-test`")
        except subprocess.TimeoutExpired:
            return report_failure(lock, f"pip-audit did not finish within {AUDIT_TIMEOUT_S} s")
        try:
            found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            errors = done.stderr.strip().splitlines() or [f"pip-audit ended with exit code {done.returncode}"]
            return report_failure(lock, errors[-1])
    packages = found["dependencies"]
    vulnerable = [package for package in packages if package.get("vulns")]
    for package in vulnerable:
        for vuln in package["vulns"]:
            fixed = ", ".join(vuln.get("fix_versions") or ()) or "no version yet"
            print(f"{lock.name}: {package['name']} {package['version']}: {vuln['id']}, fixed in {fixed}")
    print(f"{lock.name}: {len(packages)} packages, {len(vulnerable)} with known vulnerabilities")
    return VULNERABLE if vulnerable else CLEAN


def report_failure(lock: Path, reason: str) -> int:
    """Print why the lock file could not be audited and return the exit code."""
    print(
        f"{lock.name}: NOT audited: {reason}\n"
        "  The audit queries a public vulnerability database: run it on a machine with internet access.",
        file=sys.stderr,
    )
    return NOT_AUDITED


if __name__ == "__main__":
    sys.exit(main())

"""Version of the program, with the commit of its source."""

from __future__ import annotations

import json
import subprocess
from importlib.metadata import distribution, version
from pathlib import Path


def version_line() -> str:
    """Return what ``assay --version`` prints."""
    commit = _commit()
    return f"assay {version('assay')}" + (f" (commit {commit})" if commit else "")


def _commit() -> str:
    """Return the commit of the source: of the repository it was installed from, or of its checkout. Else ""."""
    origin = json.loads(distribution("assay").read_text("direct_url.json") or "{}")
    installed = str(origin.get("vcs_info", {}).get("commit_id", ""))[:12]
    folder = Path(__file__).parents[2]
    if installed or not (folder / ".git").exists():
        return installed
    command = ["git", "-C", str(folder), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=5).stdout.strip()  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""

"""Audit of the lock files, against a local OSV service."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
WEAK = {
    "id": "PYSEC-0000-1",
    "details": "planted",
    "aliases": [],
    "affected": [
        {
            "package": {"name": "weakling", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.5"}]}],
        }
    ],
}


class _Osv(BaseHTTPRequestHandler):
    """OSV service that knows one vulnerable package."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"vulns": [WEAK]} if asked["package"]["name"] == "weakling" else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Disable request logging."""


@pytest.fixture
def osv() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Osv) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def audit(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "audit.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def lock(tmp_path: Path, *pins: str) -> str:
    path = tmp_path / "some.lock"
    path.write_text("".join(f"{pin} \\\n    --hash=sha256:{'0' * 64}\n" for pin in pins))
    return str(path)


def test_vulnerable_pin_fails_the_audit(osv: str, tmp_path: Path) -> None:
    ended = audit("--osv-url", osv, lock(tmp_path, "sound==2.0", "weakling==1.0"))
    assert ended.returncode == 1, ended.stderr
    assert "weakling 1.0: PYSEC-0000-1, fixed in 1.5" in ended.stdout
    assert "2 packages, 1 with known vulnerabilities" in ended.stdout

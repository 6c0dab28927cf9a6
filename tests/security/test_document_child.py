"""Attack: a document that has taken over its decoder reads files of the service or opens connections."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cache.backends import document_child
from cache.confinement.landlock import landlock_version
from cache.confinement.privileges import DEFAULT_UID

TAKEN_OVER = """
import os, runpy, socket, subprocess, sys
child = runpy.run_path(sys.argv.pop(1))
child["_import_decoders"]()
child["confine"]()
for name, attempt in {
    "evidence": lambda: open(EVIDENCE).read(),
    "list": lambda: os.listdir(os.path.dirname(EVIDENCE)),
    "socket": lambda: socket.socket(),
    "datagram": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    "process": lambda: os.fork() or os._exit(0),
    "signal": lambda: os.kill(os.getppid(), 0),
}.items():
    try:
        attempt()
    except OSError:
        continue
    print(name)
print("uid", os.getuid())
"""


@pytest.mark.skipif(not landlock_version(), reason="the kernel has no Landlock")
def test_decoder_has_no_files_sockets_or_processes(tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    evidence.write_text("what a page said")
    user = str(DEFAULT_UID) if os.geteuid() == 0 else ""
    program = Path(document_child.__file__)
    code = TAKEN_OVER.replace("EVIDENCE", repr(str(evidence)))
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(program), str(program.parents[2]), user],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    assert done.stdout.splitlines() == [f"uid {user or os.geteuid()}"]

"""Atomic writes of files, and removal of drafts of killed processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.features.bundles.exporting import atomic_file, remove_stale_drafts

KILLED = """
import os, signal, sys
from pathlib import Path
from app.features.bundles.exporting import atomic_file
with atomic_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_file_gets_its_name_at_the_end(tmp_path: Path):
    target = tmp_path / "new" / "bundle.zip"
    with atomic_file(target) as file:
        file.write(b"whole")
        assert not target.exists()
    assert target.read_bytes() == b"whole"
    assert [path.name for path in target.parent.iterdir()] == ["bundle.zip"]


def test_error_keeps_the_existing_file(tmp_path: Path):
    target = tmp_path / "bundle.zip"
    target.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), atomic_file(target) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert target.read_bytes() == b"before"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.slow
def test_draft_of_a_killed_process_is_removed_and_one_in_use_is_kept(tmp_path: Path):
    target = tmp_path / "bundle.zip"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(target)], timeout=240, cwd=Path.cwd(), check=False)
    assert ended.returncode == -9
    assert not target.exists()
    assert len(list(tmp_path.iterdir())) == 1
    with atomic_file(tmp_path / "other.zip") as file:
        file.write(b"whole")
        assert remove_stale_drafts(tmp_path) == 0
        assert len(list(tmp_path.iterdir())) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["other.zip"]

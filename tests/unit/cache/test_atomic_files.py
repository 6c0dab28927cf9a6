"""Files that appear completely or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from cache.atomic_files import draft_name, write_atomic


def test_write_that_the_system_cuts_short_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, bytes(data[:3])))
    write_atomic(tmp_path / "file", b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_failed_write_keeps_the_old_file_and_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "file"
    write_atomic(target, b"old")

    def full(handle: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left") as raised:
        write_atomic(target, b"new")
    assert raised.value.filename == str(target)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_forked_process_has_other_draft_names() -> None:
    end, child_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(child_end, draft_name().encode())
        os._exit(0)
    os.waitpid(pid, 0)
    names = {draft_name(), draft_name(), os.read(end, 100).decode()}
    for handle in (end, child_end):
        os.close(handle)
    assert len({name.partition("-")[0] for name in names}) == 2
    assert len(names) == 3

"""Stamp of a completed set-up, and when it is no longer valid."""

from __future__ import annotations

from pathlib import Path

from bootstrap import stamp as stamps
from bootstrap.stamp import Stamp


def test_saved_stamp_is_loaded(tmp_path: Path):
    stamp = Stamp("abc", ("demo", "test"), "/usr/bin/chromium", None)
    stamps.save(tmp_path / "setup" / "stamp.json", stamp)
    assert stamps.load(tmp_path / "setup" / "stamp.json") == stamp


def test_fingerprint_depends_on_lock_interpreter_and_folder(tmp_path: Path):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        (folder / "x.lock").write_text("a==1")
    first = stamps.fingerprint(here, ["x.lock"], "3.11.7")
    assert first == stamps.fingerprint(here, ["x.lock"], "3.11.7")
    assert first != stamps.fingerprint(here, ["x.lock"], "3.12.1")
    assert first != stamps.fingerprint(there, ["x.lock"], "3.11.7")
    (here / "x.lock").write_text("a==2")
    assert first != stamps.fingerprint(here, ["x.lock"], "3.11.7")

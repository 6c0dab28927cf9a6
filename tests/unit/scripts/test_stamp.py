"""What set-up remembers, and when it no longer believes it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from bootstrap import stamp as stamps
from bootstrap.stamp import Stamp


def test_stamp_comes_back_as_it_was_saved(tmp_path: Path):
    stamp = Stamp("abc", ("demo", "test"), "/usr/bin/chromium", None)
    stamps.save(tmp_path / "setup" / "stamp.json", stamp)
    assert stamps.load(tmp_path / "setup" / "stamp.json") == stamp


@pytest.mark.parametrize("text", ["", "{", "[]", '{"inputs": "a"}', '{"inputs": "a", "profiles": 3, "browser": null}'])
def test_damaged_stamp_counts_as_none(tmp_path: Path, text: str):
    (tmp_path / "stamp.json").write_text(text)
    assert stamps.load(tmp_path / "stamp.json") is None


def test_test_environment_covers_the_demo_but_not_the_reverse():
    assert Stamp("a", ("test",)).covers("demo")
    assert not Stamp("a", ("demo",)).covers("test")


def test_fingerprint_moves_with_lock_interpreter_and_place(tmp_path: Path):
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


def test_browser_is_looked_for_again_when_gone_or_wished_otherwise(tmp_path: Path):
    stamp = Stamp("a").with_browser(sys.executable, None)
    assert stamp.has_browser(None)
    assert not stamp.has_browser("/another/browser")
    assert not Stamp("a").with_browser(str(tmp_path / "gone"), None).has_browser(None)
    assert not Stamp("a").has_browser(None)

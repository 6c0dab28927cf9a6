"""Deterministic zip files, readable by other programs, with more than 4 GiB."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import pytest

from app.features.bundles.stored_zip import StoredZip, ZipComparison

pytestmark = pytest.mark.slow


def write_zip(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    written = StoredZip(file)
    for name, data in members.items():
        written.add(name, [data])
    written.close()
    return file.getvalue()


def first_difference(file: bytes, members: dict[str, bytes]) -> int | None:
    comparison = ZipComparison(io.BytesIO(file))
    for name, data in members.items():
        comparison.add(name, [data[:2], data[2:]])
    return comparison.finish()


def test_zipfile_reads_it():
    members = {"a/x.txt": b"hello", "a/\u00e9.txt": b"", "a/b/c": b"x" * 100_000}
    with zipfile.ZipFile(io.BytesIO(write_zip(members))) as archive:
        assert {info.filename: archive.read(info) for info in archive.infolist()} == members
        assert archive.testzip() is None
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_each_changed_byte_is_found():
    members = {"a/x": b"hello", "a/\u00e9": b"you", "a/empty": b""}
    file = write_zip(members)
    assert first_difference(file, members) is None
    for at in range(len(file)):
        changed = bytearray(file)
        changed[at] ^= 1
        assert first_difference(bytes(changed), members) == at
    assert first_difference(file + b"x", members) == len(file)
    assert first_difference(file[:-1], members) == len(file) - 1
    assert first_difference(b"x" + file, members) == 0


def test_members_in_another_order_differ():
    members = {"a/x": b"hello", "a/y": b"you"}
    assert first_difference(write_zip(members), dict(reversed(members.items()))) is not None


def test_bytes_do_not_depend_on_chunks_or_the_python_version():
    file = io.BytesIO()
    written = StoredZip(file)
    written.add("a/x", [b"he", b"", b"llo"])
    written.close()
    assert file.getvalue() == write_zip({"a/x": b"hello"})
    assert (
        hashlib.sha256(file.getvalue()).hexdigest()
        == "382d25fe51c7ecebadd861a0d555d77434e347937d9f57a1dafc2e900ac9635f"
    )


def test_more_than_65535_members_are_read_and_compared():
    members = {f"a/{n}": b"" for n in range(65_536)}
    file = write_zip(members)
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        assert archive.namelist() == list(members)
    assert first_difference(file, members) is None


def test_member_with_too_many_bytes_is_rejected(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.features.bundles.stored_zip.MAX_MEMBER_BYTES", 4)
    with pytest.raises(ValueError, match="a/x has more than 4 bytes"):
        write_zip({"a/x": b"hello"})


def test_members_may_start_beyond_four_gibibytes(tmp_path: Path):
    """The gap is a hole of a sparse file, in front of the second member."""
    path = tmp_path / "large.zip"
    with path.open("w+b") as file:
        written = StoredZip(file)
        written.add("a/x", [b"hello"])
        file.truncate(2**32)
        written.start_dir = 2**32
        written.add("a/y", [b"you"])
        written.close()
        with zipfile.ZipFile(file) as archive:
            assert archive.getinfo("a/y").header_offset == 2**32
            assert archive.read("a/y") == b"you"


def test_aborted_zip_leaves_its_closed_file_alone():
    file = io.BytesIO()
    written = StoredZip(file)
    written.add("a/x", [b"hello"])
    file.close()
    del written

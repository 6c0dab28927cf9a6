"""Verification of bundles: every byte is checked and hostile archives are rejected."""

from __future__ import annotations

import contextlib
import io
import struct
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from app.features.bundles.bag import BagWriter
from app.features.bundles.bundle_reader import BundleLimits, open_bundle
from app.features.bundles.errors import BundleRefused
from app.features.bundles.verifying import verify
from tests.unit.app.conftest import RunCommand

FILES = {
    "bundle.json": b"{}\n",
    "evidence/aa.txt": b"what a page says\n" * 40,
    "evidence/bb.jpg": bytes(range(256)) * 20,
    "empty.txt": b"",
}


def write_bundle(path: Path, files: dict[str, bytes] | None = None) -> str:
    with path.open("w+b") as file:
        bag = BagWriter(file, "assay-otter")
        for name, data in (FILES if files is None else files).items():
            bag.add(name, [data[:7], data[7:]])
        return bag.finish({"Source-Organization": "assay"})


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "bundle.zip"
    write_bundle(path)
    return path


def test_valid_bundle_is_sound(bundle: Path):
    found = verify(bundle)
    assert found.valid
    assert found.files == len(FILES) + 4
    assert verify(bundle, expected_root=found.root).valid


def test_same_files_give_the_same_bytes_and_root(tmp_path: Path, bundle: Path):
    again = tmp_path / "again.zip"
    assert write_bundle(again) == verify(bundle).root
    assert again.read_bytes() == bundle.read_bytes()


def test_different_byte_gives_a_different_root(tmp_path: Path, bundle: Path):
    other = write_bundle(tmp_path / "other.zip", FILES | {"bundle.json": b"{} "})
    assert other != verify(bundle).root
    assert not verify(bundle, expected_root=other).valid


def test_truncated_or_added_bytes_are_found(tmp_path: Path, bundle: Path):
    data, place = bundle.read_bytes(), tmp_path / "other.zip"
    for other in (data[:-1], data[1:], data + b"\0", b"\0" + data, data[: len(data) // 2]):
        place.write_bytes(other)
        with contextlib.suppress(BundleRefused):
            assert not verify(place).valid


def repack(target: Path, source: Path, change: Callable[[str, bytes], bytes | None] = lambda name, data: data) -> Path:
    """Copy the bag into a zip that another program writes."""
    with zipfile.ZipFile(source) as before, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as after:
        for info in before.infolist():
            data = change(info.filename, before.read(info))
            if data is not None:
                after.writestr(info.filename, data)
    return target


def test_repacked_bag_is_sound_only_with_repacked(tmp_path: Path, bundle: Path):
    other = repack(tmp_path / "other.zip", bundle)
    assert not verify(other).valid
    assert "--repacked" in verify(other).problems[0]
    assert verify(other, repacked=True, expected_root=verify(bundle).root).valid


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda name, data: None if name.endswith("aa.txt") else data, "data/evidence/aa.txt is missing"),
        (lambda name, data: data + b"!" if name.endswith("aa.txt") else data, "does not match the number of files"),
        (lambda name, data: b"!" + data[1:] if name.endswith("aa.txt") else data, "data/evidence/aa.txt has changed"),
        (lambda name, data: data.upper() if name.endswith("/manifest-sha256.txt") else data, "missing"),
        (lambda name, data: None if name.endswith("bagit.txt") else data, "bagit.txt is missing"),
        (lambda name, data: data + b"x: y\n" if name.endswith("bag-info.txt") else data, "tagmanifest-sha256.txt"),
    ],
)
def test_changed_file_is_named(
    tmp_path: Path, bundle: Path, change: Callable[[str, bytes], bytes | None], message: str
):
    found = verify(repack(tmp_path / "other.zip", bundle, change), repacked=True)
    assert any(message in problem for problem in found.problems), found.problems


def test_extra_file_is_found(tmp_path: Path, bundle: Path):
    other = repack(tmp_path / "other.zip", bundle)
    with zipfile.ZipFile(other, "a") as archive:
        archive.writestr("assay-otter/more.txt", "x")
        archive.writestr("assay-otter/data/more.txt", "x")
    problems = verify(other, repacked=True).problems
    assert any("more.txt is not part of the bag" in problem for problem in problems)
    assert any("data/more.txt is not in the manifest" in problem for problem in problems)


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes], packing: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", packing) as archive:
        warnings.simplefilter("ignore")  # some archives contain duplicate names on purpose
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def special_file(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def encrypted() -> bytes:
    data = bytearray(zipped(("a/data/x", b"secret")))
    for magic, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(magic) + offset] |= 1
    return bytes(data)


def overlapping() -> bytes:
    """Return an archive with two directory entries for the bytes of one member."""
    data = zipped(("a/data/x", b"x" * 5000))
    start = data.index(b"PK\1\2")
    end = data.index(b"PK\5\6")
    entry = data[start:end]
    twin = entry.replace(b"a/data/x", b"a/data/y")
    tail = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2, 2, len(entry) * 2, start, 0)
    return data[:start] + entry + twin + tail


HOSTILE = {
    "nothing": b"",
    "no zip": b"PK\3\4 but nothing behind it",
    "empty": zipped(),
    "climbs": zipped(("a/data/../../x", b"")),
    "absolute": zipped(("/etc/passwd", b"")),
    "absolute on windows": zipped(("a/C:/x", b"")),
    "backslashes": zipped(("a/..\\x", b"")),
    "dot": zipped(("a/./x", b"")),
    "empty part": zipped(("a//x", b"")),
    "no folder": zipped(("bagit.txt", b"")),
    "two folders": zipped(("a/x", b""), ("b/x", b"")),
    "control characters": zipped(("a/x\x1b[2J", b"")),
    "long name": zipped(("a/" + "x" * 2000, b"")),
    "link": zipped((special_file("a/link", 0o120777), b"/etc/passwd")),
    "device": zipped((special_file("a/null", 0o020666), b"")),
    "pipe": zipped((special_file("a/pipe", 0o010666), b"")),
    "twice": zipped(("a/x", b"1"), ("a/x", b"2")),
    "twice but for case": zipped(("a/x", b"1"), ("a/X", b"2")),
    "twice in unicode": zipped(("a/\u00e9", b"1"), ("a/e\u0301", b"2")),
    "encrypted": encrypted(),
    "packed otherwise": zipped(("a/x", b"x" * 100), packing=zipfile.ZIP_BZIP2),
    "overlapping": overlapping(),
    "folder": zipped(("a/data/", b"")),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archive_is_rejected(tmp_path: Path, name: str):
    path = tmp_path / "hostile.zip"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(BundleRefused):
        verify(path)
    with pytest.raises(BundleRefused):
        verify(path, repacked=True)
    assert sorted(tmp_path.iterdir()) == [path]


def test_zip_bomb_is_stopped_during_decompression(tmp_path: Path):
    path = tmp_path / "bomb.zip"
    path.write_bytes(zipped(("a/data/x", bytes(8 * 1024 * 1024)), packing=zipfile.ZIP_DEFLATED))
    found = verify(path, repacked=True)
    assert "inflates to more than" in found.problems[0]
    assert found.bytes < 4 * 1024 * 1024


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (BundleLimits(members=3), "members"),
        (BundleLimits(total_bytes=1000), "1000 bytes"),
        (BundleLimits(member_bytes=1000), "more than 1000 bytes"),
    ],
)
def test_limits_are_enforced(bundle: Path, limits: BundleLimits, message: str):
    try:
        problems: tuple[str, ...] = verify(bundle, limits=limits).problems
    except BundleRefused as refused:
        problems = (str(refused),)
    assert any(message in problem for problem in problems), problems


def test_directory_with_a_wrong_length_is_rejected(tmp_path: Path, bundle: Path):
    data = bytearray(bundle.read_bytes())
    at = data.rindex(b"PK\5\6")
    struct.pack_into("<L", data, at + 12, 0xFFFF_FFF0)
    path = tmp_path / "lies.zip"
    path.write_bytes(data)
    with pytest.raises(BundleRefused):
        verify(path)


def test_missing_file_is_rejected(tmp_path: Path):
    with pytest.raises(BundleRefused, match=r"Cannot read .*bundle\.zip"):
        verify(tmp_path / "bundle.zip")


def test_members_are_read_by_name_with_a_size_limit(bundle: Path):
    with open_bundle(bundle) as found:
        assert found.read("data/evidence/aa.txt") == FILES["evidence/aa.txt"]
        with pytest.raises(BundleRefused, match="more than 10 bytes"):
            found.read("data/evidence/aa.txt", max_bytes=10)
        with pytest.raises(BundleRefused, match="not in the bundle"):
            found.read("data/evidence/cc.txt")


def test_command_verifies_without_the_extra_for_signatures(
    assay: RunCommand, bundle: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delitem(sys.modules, "app.features.bundles.signing", raising=False)
    loaded = [name for name in sys.modules if name.partition(".")[0] == "cryptography"]
    for name in ("cryptography", *loaded):
        monkeypatch.setitem(sys.modules, name, None)
    root = verify(bundle).root
    ended = assay("bundle", "verify", str(bundle), "--root", root)
    assert (ended.code, ended.out) == (0, f"root {root}\n")
    signed = assay("bundle", "verify", str(bundle), "--signature", "a.sig", "--public-key", "a.pub")
    assert signed.code == 1
    assert "install the extra 'bundles'" in signed.err

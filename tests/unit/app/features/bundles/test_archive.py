"""Zip and manifest of bundles: every byte is checked and hostile archives are refused."""

from __future__ import annotations

import contextlib
import hashlib
import io
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

from app.features.bundles import archive
from app.features.bundles.archive import MANIFEST, BundleError, BundleRefused, json_bytes, new_bundle, open_bundle
from app.features.bundles.verification import verify

FILES = {
    "results/r.json": b"{}\n",
    "evidence/aa.txt": b"what a page says\n" * 40,
    "evidence/bb.jpg": bytes(range(256)) * 20,
    "empty.txt": b"",
}
FIELDS: dict[str, Any] = {"format": 1, "agent": "otter", "content": True}


def write_bundle(path: Path) -> Path:
    with new_bundle(path) as writer:
        for name, data in FILES.items():
            writer.add(name, data)
        writer.finish(FIELDS)
    return path


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes], packing: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", packing) as target:
        warnings.simplefilter("ignore")  # some archives contain duplicate names on purpose
        for name, data in members:
            target.writestr(name, data)
    return file.getvalue()


def manifest_of(contents: dict[str, bytes], **fields: Any) -> bytes:
    listed = [
        {"path": path, "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        for path, data in contents.items()
    ]
    return json_bytes({**FIELDS, "files": listed, **fields})


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_bundle(tmp_path / "bundle.zip")


def problems(path: Path) -> list[str]:
    with open_bundle(path) as found:
        return found.problems()


def test_bundle_has_no_problems_and_any_program_reads_it(bundle: Path):
    assert problems(bundle) == []
    with open_bundle(bundle) as found:
        assert {path: found.read(path) for path in found.files} == FILES
        with pytest.raises(BundleRefused, match="not in the bundle"):
            found.read("evidence/cc.txt")
    with zipfile.ZipFile(bundle) as opened:
        assert {name: opened.read(name) for name in opened.namelist() if name != MANIFEST} == FILES


def test_failed_export_keeps_the_existing_file(tmp_path: Path, bundle: Path):
    before = bundle.read_bytes()
    with pytest.raises(ZeroDivisionError), new_bundle(bundle) as writer:
        writer.add("a", b"half")
        raise ZeroDivisionError
    assert bundle.read_bytes() == before
    assert list(tmp_path.iterdir()) == [bundle]


def test_truncated_or_added_bytes_are_found(tmp_path: Path, bundle: Path):
    data, place = bundle.read_bytes(), tmp_path / "other.zip"
    ends = (data + b"\0", data + data[-22:], data[:-1], data[: len(data) // 2])
    for other in (*ends, data[1:], b"\0" + data):
        place.write_bytes(other)
        with contextlib.suppress(BundleRefused):
            assert problems(place)


@pytest.mark.parametrize(
    ("files", "listed", "message"),
    [
        (FILES, {"more.txt": b"x"}, "more.txt is missing"),
        (FILES | {"more.txt": b"x"}, {}, "more.txt is not in manifest.json"),
        (FILES, {"evidence/aa.txt": b"x" * 680}, "evidence/aa.txt has changed"),
    ],
)
def test_difference_to_the_manifest_is_named(
    tmp_path: Path, files: dict[str, bytes], listed: dict[str, bytes], message: str
):
    place = tmp_path / "other.zip"
    place.write_bytes(zipped(*files.items(), (MANIFEST, manifest_of(FILES | listed))))
    assert any(each.startswith(message) for each in problems(place))


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (b"[" * 100_000, "not valid JSON"),
        (manifest_of({}, format=2), "has format 2"),
        (manifest_of({}, more=1), "invalid at more"),
        (manifest_of({}, files=[{"path": "a", "sha256": "0" * 64, "bytes": 1}] * 2), "twice"),
        (manifest_of({"a": b""}, absent=[{"path": "a", "reason": "lost"}]), "as a file and as absent"),
    ],
)
def test_invalid_manifest_is_refused(tmp_path: Path, manifest: bytes, message: str):
    place = tmp_path / "other.zip"
    place.write_bytes(zipped((MANIFEST, manifest)))
    with pytest.raises(BundleRefused, match=message):
        verify(place)


def special_file(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def encrypted() -> bytes:
    data = bytearray(zipped(("a/x", b"secret")))
    for magic, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(magic) + offset] |= 1
    return bytes(data)


def overlapping() -> bytes:
    """Return an archive with two directory entries for the bytes of one member."""
    data = zipped(("a/x", b"x" * 5000))
    start, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")
    entry = data[start:end]
    twin = entry.replace(b"a/x", b"a/y")
    tail = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2, 2, len(entry) * 2, start, 0)
    return data[:start] + entry + twin + tail


HOSTILE = {
    "no manifest": zipped(("results/r.json", b"{}")),
    "climbs": zipped(("a/../../x", b"")),
    "absolute": zipped(("/etc/passwd", b"")),
    "control characters": zipped(("a/x\x1b[2J", b"")),
    "link": zipped((special_file("a/link", 0o120777), b"/etc/passwd")),
    "twice": zipped(("a/x", b"1"), ("a/x", b"2")),
    "twice but for case": zipped(("a/x", b"1"), ("a/X", b"2")),
    "encrypted": encrypted(),
    "compressed, as a bomb": zipped(("a/x", bytes(8 * 1024 * 1024)), packing=zipfile.ZIP_DEFLATED),
    "overlapping": overlapping(),
    "folder": zipped(("a/b/", b"")),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archive_is_refused(tmp_path: Path, name: str):
    path = tmp_path / "hostile.zip"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(BundleRefused):
        verify(path)
    assert sorted(tmp_path.iterdir()) == [path]


def test_limits_are_enforced(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, limit, message in (
        ("MAX_FILES", 3, "more than 3 files"),
        ("MAX_FILE_BYTES", 1000, "more than 1000 bytes"),
        ("_MAX_DIRECTORY_BYTES", 100, "files"),
        ("MAX_JSON_BYTES", 100, "more than 100 bytes"),
        ("MAX_JSON_VALUES", 3, "3 values"),
    ):
        with monkeypatch.context() as patch, pytest.raises(BundleRefused, match=message):
            patch.setattr(archive, name, limit)
            verify(bundle)
    monkeypatch.setattr(archive, "MAX_FILE_BYTES", 1000)
    with pytest.raises(BundleError, match="more than 1000 bytes"):
        write_bundle(tmp_path / "large.zip")

"""Verification of a bundle: hashes of all contents, and the byte layout of the zip."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.features.bundles.bag import (
    BAGIT,
    DECLARATION,
    INFO,
    MANIFEST,
    TAG_FILES,
    TAG_MANIFEST,
    manifest_file,
    root_hash,
    tag_manifest_file,
)
from app.features.bundles.bundle_reader import LIMITS, BundleLimits, BundleReader, open_bundle
from app.features.bundles.errors import BundleRefused
from app.features.bundles.stored_zip import ZipComparison

MAX_TAG_FILE_BYTES = 256 * 1024 * 1024
MAX_PROBLEMS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationReport:
    """Report of a verification. ``root`` is the hash of the tag manifest in the file; ``problems`` are sentences."""

    root: str
    files: int
    bytes: int
    problems: tuple[str, ...]

    @property
    def valid(self) -> bool:
        return not self.problems


def verify(
    path: Path, *, expected_root: str | None = None, repacked: bool = False, limits: BundleLimits = LIMITS
) -> VerificationReport:
    """Read and check a whole bundle. Blocks. Memory does not grow with the size of the bundle.

    ``expected_root`` is a root hash from a trusted source. With ``repacked``, only the contents are checked and not the
    byte layout of the zip, which another program may have written.

    Raises:
        BundleRefused: the file is not a valid bundle, or is unsafe.
    """
    with open_bundle(path, limits) as bundle:
        return _Check(bundle, repacked=repacked).run(expected_root)


class _Check:
    def __init__(self, bundle: BundleReader, *, repacked: bool) -> None:
        self._bundle = bundle
        self._zip = None if repacked else ZipComparison(bundle.file)
        self._problems: list[str] = []
        self._payload: dict[str, str] = {}
        self._tags: dict[str, bytes] = {}
        self._bytes = self._payload_bytes = 0

    def run(self, expected_root: str | None) -> VerificationReport:
        for name in self._bundle.names:
            self._read(name)
        missing = [name for name in (*TAG_FILES, TAG_MANIFEST) if name not in self._tags]
        for name in missing:
            self._add_problem(f"{name} is missing")
        if not missing:
            self._compare()
        root = root_hash(self._tags.get(TAG_MANIFEST, b""))
        if expected_root is not None and root != expected_root:
            self._add_problem(f"the root hash is {root}, expected {expected_root}")
        return VerificationReport(
            root=root, files=len(self._bundle.names), bytes=self._bytes, problems=tuple(self._problems)
        )

    def _read(self, name: str) -> None:
        """Hash one member. An unreadable member is recorded as a problem, and the check continues."""
        sha256, size = hashlib.sha256(), 0
        is_tag = name in TAG_FILES or name == TAG_MANIFEST
        kept: list[bytes] = []

        def hashed() -> Iterator[bytes]:
            nonlocal size
            for chunk in self._bundle.chunks(name):
                size += len(chunk)
                if is_tag and size > MAX_TAG_FILE_BYTES:
                    raise BundleRefused(f"{name} has more than {MAX_TAG_FILE_BYTES} bytes")
                sha256.update(chunk)
                if is_tag:
                    kept.append(chunk)
                yield chunk

        try:
            if self._zip is None:
                deque(hashed(), maxlen=0)
            else:
                self._zip.add(f"{self._bundle.base}/{name}", hashed())
        except (BundleRefused, ValueError) as error:
            self._add_problem(str(error))
        self._bytes += size
        if is_tag:
            self._tags[name] = b"".join(kept)
        elif name.startswith("data/"):
            self._payload[name] = sha256.hexdigest()
            self._payload_bytes += size
        else:
            self._add_problem(f"{name} is not part of the bag")

    def _compare(self) -> None:
        self._compare_manifest()
        if self._tags[BAGIT] != DECLARATION:
            self._add_problem(f"{BAGIT} does not have the required content")
        oxum = f"Payload-Oxum: {self._payload_bytes}.{len(self._payload)}\n".encode()
        if oxum not in self._tags[INFO]:
            self._add_problem(f"Payload-Oxum in {INFO} does not match the number of files and bytes")
        if tag_manifest_file(self._tags) != self._tags[TAG_MANIFEST]:
            self._add_problem(f"{TAG_MANIFEST} does not match the hashes of the other tag files")
        if self._problems or self._zip is None:
            return
        changed_byte = self._zip.finish()
        if changed_byte is not None:
            self._add_problem(
                f"byte {changed_byte} of the zip has changed, but all contents are unchanged (if another program "
                "packed the bag again, add --repacked)"
            )

    def _compare_manifest(self) -> None:
        if manifest_file(self._payload) == self._tags[MANIFEST]:
            return
        names: dict[str, str] = {}
        for line in self._tags[MANIFEST].decode("utf-8", "replace").splitlines():
            sha256, _, path = line.partition("  ")
            names[path] = sha256
        for path in sorted(names.keys() - self._payload.keys()):
            self._add_problem(f"{path} is missing")
        for path in sorted(self._payload.keys() - names.keys()):
            self._add_problem(f"{path} is not in the manifest")
        for path in sorted(names.keys() & self._payload.keys()):
            if names[path] != self._payload[path]:
                self._add_problem(f"{path} has changed")
        if not self._problems:
            self._add_problem(f"{MANIFEST} has the right hashes but not the expected layout")

    def _add_problem(self, text: str) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(text)

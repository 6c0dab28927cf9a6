"""BagIt bag (RFC 8493) in a zip: payload below ``data/``, SHA-256 manifests and one root hash.

The root hash is the SHA-256 of ``tagmanifest-sha256.txt``. That file lists the hashes of the other tag files, among
them the manifest, which lists the hashes of the payload.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO, Final

from app.features.bundles.stored_zip import StoredZip

DECLARATION: Final = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
BAGIT, INFO = "bagit.txt", "bag-info.txt"
MANIFEST, TAG_MANIFEST = "manifest-sha256.txt", "tagmanifest-sha256.txt"
TAG_FILES: Final = (INFO, BAGIT, MANIFEST)


class BagWriter:
    """Writer for a bag below the folder ``base`` of a zip. Add the payload in any order, then call ``finish``."""

    def __init__(self, file: BinaryIO, base: str) -> None:
        self._zip = StoredZip(file)
        self._base = base
        self._hashes: dict[str, str] = {}
        self._payload_bytes = 0

    def add(self, path: str, chunks: Iterable[bytes]) -> str:
        """Write one payload file (``path`` is relative to ``data/``) and return its SHA-256."""
        name = f"data/{path}"
        sha256 = hashlib.sha256()

        def hashed() -> Iterator[bytes]:
            for chunk in chunks:
                sha256.update(chunk)
                yield chunk

        self._payload_bytes += self._zip.add(f"{self._base}/{name}", hashed())
        self._hashes[name] = sha256.hexdigest()
        return self._hashes[name]

    def finish(self, info: Mapping[str, str]) -> str:
        """Write the tag files and return the root hash."""
        oxum = f"{self._payload_bytes}.{len(self._hashes)}"
        files = {
            INFO: info_file({**info, "Payload-Oxum": oxum}),
            BAGIT: DECLARATION,
            MANIFEST: manifest_file(self._hashes),
        }
        files[TAG_MANIFEST] = tag_manifest_file(files)
        for name, data in files.items():
            self._zip.add(f"{self._base}/{name}", [data])
        self._zip.close()
        return root_hash(files[TAG_MANIFEST])


def info_file(info: Mapping[str, str]) -> bytes:
    """Return ``bag-info.txt``: one label per line."""
    return "".join(f"{label}: {' '.join(value.split())}\n" for label, value in sorted(info.items())).encode()


def manifest_file(hashes: Mapping[str, str]) -> bytes:
    """Return a manifest in the format that ``sha256sum -c`` reads."""
    return "".join(f"{sha256}  {path}\n" for path, sha256 in sorted(hashes.items())).encode()


def tag_manifest_file(files: Mapping[str, bytes]) -> bytes:
    return manifest_file({name: hashlib.sha256(files[name]).hexdigest() for name in TAG_FILES})


def root_hash(tag_manifest: bytes) -> str:
    return hashlib.sha256(tag_manifest).hexdigest()

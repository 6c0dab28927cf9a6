"""Check of the files of a bundle against their names, and of the descriptions against the files they describe.

A manifest can be rebuilt after a file was replaced. A file that is named by its hash cannot be replaced under that
name, and the results refer to these names. Descriptions (preview, RO-Crate, WACZ, ``bag-info.txt``) follow from other
files, so they are generated again and compared. Blocks.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from app.features.bundles.bag import INFO, info_file
from app.features.bundles.bundle_reader import BundleReader
from app.features.bundles.crate import bag_info, crate_metadata, crate_preview, evidence_date
from app.features.bundles.errors import BundleRefused
from app.features.bundles.layout import (
    CRATE,
    INDEX,
    PREVIEW,
    WACZ,
    Index,
    capture_path,
    evidence_path,
    json_bytes,
    read_capture,
    read_json,
)
from app.features.bundles.wacz import CapturesArchive
from cache.capture import Capture
from judges.llm.call_recording import schema_sha256
from judges.prompting.prompts.library import locked_digests

MAX_BODY_BYTES: Final = 256 * 1024 * 1024

_HASH_NAME = re.compile(r"(?:answers|scripts|texts|evidence|call-logs)/([0-9a-f]{64})\.[a-z]+")
_SCHEMA_NAME = re.compile(r"schemas/([0-9a-f]{64})\.json")
_PROMPT_NAME = re.compile(r"prompts/([a-z0-9_]+@[0-9]+)\.md")
_RESULT_NAME = re.compile(r"(results|trees|calls|overrides)/(.+)\.jsonl?")
_CAPTURE_NAME = re.compile(r"captures/(.+)\.json")


def payload_hashes(bundle: BundleReader) -> dict[str, str]:
    """Return the SHA-256 of every file below ``data/``, by path."""
    names = (name for name in bundle.names if name.startswith("data/"))
    return {name.removeprefix("data/"): _sha256(bundle.chunks(name)) for name in names}


def _sha256(chunks: Iterable[bytes]) -> str:
    sha256 = hashlib.sha256()
    for chunk in chunks:
        sha256.update(chunk)
    return sha256.hexdigest()


def check_file_names(bundle: BundleReader, hashes: Mapping[str, str], index: Index) -> None:
    """Check every file against its name, and that each file belongs to a bundle with this index.

    Raises:
        BundleRefused: a file does not match the hash in its name, a prompt is not the one that this version of assay
            has under that name and version, or a file does not belong to the bundle.
    """
    prompts = locked_digests()
    results = {result.result_id for result in index.results}
    pages = {page for result in index.results for page in result.pages}
    for path, sha256 in hashes.items():
        if path in (INDEX, PREVIEW, CRATE, WACZ):
            continue
        if match := _HASH_NAME.fullmatch(path):
            matches = sha256 == match[1]
        elif match := _SCHEMA_NAME.fullmatch(path):
            matches = schema_sha256(read_json(bundle, path)) == match[1]
        elif match := _PROMPT_NAME.fullmatch(path):
            text = bundle.read(f"data/{path}", max_bytes=MAX_BODY_BYTES).removesuffix(b"\n")
            matches = hashlib.sha256(text).hexdigest() == prompts.get(match[1], hashlib.sha256(text).hexdigest())
        elif match := _RESULT_NAME.fullmatch(path):
            matches = match[2] in results
        else:
            match = _CAPTURE_NAME.fullmatch(path)
            matches = match is not None and match[1] in pages
        if not matches:
            raise BundleRefused(f"data/{path} {_MISMATCHES.get(path.partition('/')[0], 'does not match its hash')}")


_NOT_INDEXED = f"does not belong to a result in data/{INDEX}"
_MISMATCHES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("results", "trees", "calls", "overrides", "captures"), _NOT_INDEXED),
    "prompts": "differs from the prompt of this name and version",
}


def check_descriptions(bundle: BundleReader, hashes: Mapping[str, str], index: Index) -> None:
    """Generate the descriptions again and compare them.

    Raises:
        BundleRefused: a description differs, or a page of the archive is missing.
    """
    absent = {each.path for each in index.absent}
    captures: dict[str, Capture] = {}
    for page_id in (page for result in index.results for page in result.pages):
        if page_id not in captures and capture_path(page_id) not in absent:
            captures[page_id] = read_capture(bundle, page_id)
    sizes = {path: bundle.size(f"data/{path}") for path in hashes}
    described = {path: size for path, size in sizes.items() if path not in (PREVIEW, CRATE)}
    at, written = evidence_date(captures.values()), index
    expected = {
        PREVIEW: hashlib.sha256(crate_preview(written, at)).hexdigest(),
        CRATE: hashlib.sha256(json_bytes(crate_metadata(written, described, captures, at))).hexdigest(),
    }
    if WACZ in hashes:
        expected[WACZ] = _archive_hash(bundle, captures.values(), absent)
    for path, sha256 in expected.items():
        if hashes.get(path) != sha256:
            raise BundleRefused(f"data/{path} does not describe the other files of the bundle")
    oxum = f"{sum(sizes.values())}.{len(sizes)}"
    if bundle.read(INFO, max_bytes=MAX_BODY_BYTES) != info_file({**bag_info(index.agent, at), "Payload-Oxum": oxum}):
        raise BundleRefused(f"{INFO} does not describe the other files of the bundle")


def _archive_hash(bundle: BundleReader, captures: Iterable[Capture], absent: set[str]) -> str:
    archive = CapturesArchive()
    for capture in captures:
        bodies: dict[str, bytes] = {}
        for name, blob in sorted(capture.blobs.items()):
            path = evidence_path(blob.sha256, blob.media_type)
            if name in ("text", "html", "pdf") and path not in absent:
                bodies[name] = bundle.read(f"data/{path}", max_bytes=MAX_BODY_BYTES)
        archive.add(capture, bodies)
    with archive.build() as file:
        return _sha256(iter(lambda: file.read(1 << 20), b""))

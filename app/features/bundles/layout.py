"""Layout of a bundle: the paths of its files, and the index ``bundle.json`` that relates them to results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.features.bundles.bundle_reader import BundleReader
from app.features.bundles.errors import BundleRefused
from cache.capture import Capture
from cache.capture_index import capture_from_json
from cache.errors import IndexFailed
from judges.isolation.rpc_framing import max_values

FORMAT: Final = 1
INDEX: Final = "bundle.json"
CRATE: Final = "ro-crate-metadata.json"
PREVIEW: Final = "ro-crate-preview.html"
WACZ: Final = "evidence/captures.wacz"
MAX_JSON_BYTES: Final = 64 * 1024 * 1024
MAX_JSON_VALUES: Final = 5_000_000
"""Maximum number of values in a JSON file. Decoded, each one needs up to about 100 bytes."""

_EXTENSIONS: Final[Mapping[str, str]] = {
    "text/plain; charset=utf-8": "txt",
    "text/html": "html",
    "application/pdf": "pdf",
    "application/json": "json",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/webp": "webp",
    "image/gif": "gif",
}


def evidence_path(sha256: str, media_type: str) -> str:
    """Return the path of a capture body, named by its hash."""
    return f"evidence/{sha256}.{_EXTENSIONS.get(media_type, 'bin')}"


def _path_in(folder: str, extension: str) -> Callable[[str], str]:
    """Return a function that converts an id or a hash to the path of a file in ``folder``."""
    return lambda name: f"{folder}/{name}.{extension}"


capture_path = _path_in("captures", "json")
answer_path = _path_in("answers", "md")
script_path = _path_in("scripts", "py")
result_path = _path_in("results", "json")
tree_path = _path_in("trees", "json")
overrides_path = _path_in("overrides", "json")
calls_path = _path_in("calls", "jsonl")
call_log_path = _path_in("call-logs", "log")
text_path = _path_in("texts", "txt")
prompt_path = _path_in("prompts", "md")
schema_path = _path_in("schemas", "json")


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentFile:
    """File that is missing from the bundle: its ``path``, and a sentence ``reason``."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedResult:
    """Result in the index with its related files. None means that the file is not in the bundle."""

    result_id: str
    task_id: str
    answer_name: str
    answer: str | None
    script: str | None
    kind: str
    calls: int | None
    pages: tuple[str, ...]
    overrides: int
    """Number of overrides at the time of the export."""


@dataclass(slots=True, kw_only=True)
class Index:
    """Contents of ``data/bundle.json`` during an export."""

    agent: str
    content: bool
    results: list[IndexedResult] = field(default_factory=list)
    without_result: list[dict[str, Any]] = field(default_factory=list)
    absent: list[AbsentFile] = field(default_factory=list)

    def to_bytes(self) -> bytes:
        document = {
            "format": FORMAT,
            "agent": self.agent,
            "content": self.content,
            "results": [asdict(result) for result in self.results],
            "without_result": self.without_result,
            "absent": sorted(
                ({"path": each.path, "reason": each.reason} for each in self.absent), key=lambda each: each["path"]
            ),
        }
        return json_bytes(document)


def json_bytes(document: Any) -> bytes:
    """Return canonical JSON: equal values give equal bytes."""
    return (json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1) + "\n").encode("utf-8", "replace")


_SHA256 = r"^[0-9a-f]{64}$"
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$"


class _FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True)


class IndexedResultIn(_FrozenModel):
    """Result as listed in the index of a bundle."""

    result_id: str = Field(pattern=_NAME)
    task_id: str = Field(pattern=_NAME)
    answer_name: str = Field(max_length=200)
    answer: str | None = Field(pattern=_SHA256)
    script: str | None = Field(pattern=_SHA256)
    kind: str
    calls: int | None
    pages: tuple[str, ...]
    overrides: int = 0


class AbsentFileIn(_FrozenModel):
    path: str
    reason: str


class IndexIn(_FrozenModel):
    """Index as read from a bundle. The bundle may come from an untrusted source."""

    format: int
    agent: str = Field(max_length=200)
    content: bool
    results: tuple[IndexedResultIn, ...]
    without_result: tuple[Any, ...] = ()
    absent: tuple[AbsentFileIn, ...] = ()

    def as_written(self) -> Index:
        """Return the index as the export had it."""
        return Index(
            agent=self.agent,
            content=self.content,
            results=[IndexedResult(**result.model_dump()) for result in self.results],
            without_result=list(self.without_result),
            absent=[AbsentFile(path=each.path, reason=each.reason) for each in self.absent],
        )


def read_index(bundle: BundleReader) -> IndexIn:
    """Return the index of an open bundle.

    Raises:
        BundleRefused: the index is missing, invalid or in another format version.
    """
    try:
        index = IndexIn.model_validate(read_json(bundle, INDEX))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(map(str, first["loc"]))
        raise BundleRefused(f"data/{INDEX} is invalid at {location}: {first['msg']}") from error
    if index.format != FORMAT:
        raise BundleRefused(
            f"data/{INDEX} has format version {index.format}; this version of assay reads only {FORMAT}"
        )
    return index


def read_json(bundle: BundleReader, path: str) -> Any:
    """Read one JSON file of the payload. Raises BundleRefused."""
    return parse_json(bundle.read(f"data/{path}", max_bytes=MAX_JSON_BYTES), path)


def parse_json(data: bytes, path: str) -> Any:
    """Parse JSON from the payload file at ``path``. Raises BundleRefused."""
    if max_values(data) > MAX_JSON_VALUES:
        raise BundleRefused(f"data/{path} has more than {MAX_JSON_VALUES} values")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BundleRefused(f"data/{path} is not valid JSON: {error}") from error


def read_capture(bundle: BundleReader, page_id: str) -> Capture:
    """Read the record of a capture. Raises BundleRefused."""
    path = capture_path(page_id)
    record = read_json(bundle, path)
    if not isinstance(record, Mapping):
        raise BundleRefused(f"data/{path} is not a capture record")
    try:
        capture = capture_from_json(record)
    except IndexFailed as error:
        raise BundleRefused(f"data/{path}: {error}") from error
    if capture.id != page_id:
        raise BundleRefused(f"data/{path} is the record of another capture")
    for blob in capture.blobs.values():
        if not re.fullmatch(_SHA256, blob.sha256):
            raise BundleRefused(f"data/{path} refers to a body by an invalid hash")
    return capture

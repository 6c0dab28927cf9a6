"""Layout of a bundle: the paths of its files, and the index ``bundle.json`` that relates them to results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, Field, ValidationError

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
result_path = _path_in("results", "json")
tree_path = _path_in("trees", "json")
overrides_path = _path_in("overrides", "json")
calls_path = _path_in("calls", "jsonl")
call_log_path = _path_in("call-logs", "log")
text_path = _path_in("texts", "txt")
prompt_path = _path_in("prompts", "md")
schema_path = _path_in("schemas", "json")


ScriptSuffix: TypeAlias = Literal["py", "yaml"]
"""Suffix of a judge file: Python, or a task in YAML."""


def script_path(sha256: str, suffix: ScriptSuffix = "py") -> str:
    """Return the path of a judge file."""
    return f"scripts/{sha256}.{suffix}"


_SHA256 = r"^[0-9a-f]{64}$"
_Sha256: TypeAlias = Annotated[str, Field(pattern=_SHA256)]
_Name: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentFile:
    """File that is missing from the bundle: its ``path``, and a sentence ``reason``."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedResult:
    """Result in the index with its related files. None means that the file is not in the bundle."""

    result_id: _Name
    task_id: _Name
    answer_name: Annotated[str, Field(max_length=200)]
    answer: _Sha256 | None
    script: _Sha256 | None
    kind: str
    calls: int | None
    pages: tuple[str, ...]
    script_suffix: ScriptSuffix = "py"
    """Suffix of the judge file. Bundles without it contain only Python files."""
    overrides: int = 0
    """Number of overrides at the time of the export."""


class Index(BaseModel):
    """Contents of ``data/bundle.json``. A bundle that is read may come from an untrusted source."""

    format: int = FORMAT
    agent: str = Field(max_length=200)
    content: bool
    results: list[IndexedResult] = []
    without_result: list[Any] = []
    absent: list[AbsentFile] = []

    def to_bytes(self) -> bytes:
        document = self.model_dump()
        document["absent"].sort(key=lambda each: each["path"])
        return json_bytes(document)


def json_bytes(document: Any) -> bytes:
    """Return canonical JSON: equal values give equal bytes."""
    return (json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1) + "\n").encode("utf-8", "replace")


def read_index(bundle: BundleReader) -> Index:
    """Return the index of an open bundle.

    Raises:
        BundleRefused: the index is missing, invalid or in another format version.
    """
    try:
        index = Index.model_validate(read_json(bundle, INDEX))
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

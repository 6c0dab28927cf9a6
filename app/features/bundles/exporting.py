"""Export of bundles. Files are written in a fixed order, so equal results give equal bytes.

At most one body is in memory at a time. Bodies are read and hashed outside the event loop.

``calls/<result>.jsonl`` has one line per call. Long texts and images are separate files, named by their SHA-256.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from uuid import uuid4

from answers.submission import NAME_PATTERN, Answer
from app.api.overrides import override_fields
from app.features.bundles.agent_results import AgentResults, SourceResult
from app.features.bundles.bag import BagWriter
from app.features.bundles.content_redaction import redact_call, truncate_text, truncate_values
from app.features.bundles.crate import bag_info, crate_metadata, crate_preview, evidence_date
from app.features.bundles.errors import BundleError
from app.features.bundles.layout import (
    CRATE,
    INDEX,
    PREVIEW,
    WACZ,
    AbsentFile,
    Index,
    IndexedResult,
    ScriptSuffix,
    answer_path,
    call_log_path,
    calls_path,
    capture_path,
    evidence_path,
    json_bytes,
    overrides_path,
    prompt_path,
    result_path,
    schema_path,
    script_path,
    text_path,
    tree_path,
)
from app.features.bundles.wacz import CapturesArchive
from app.observability.redaction import Redactor
from cache.atomic_files import sync_file
from cache.blobs import BlobArea, BlobStore
from cache.capture import Capture
from cache.capture_index import capture_to_json
from cache.errors import BlobCorrupt, BlobMissing
from judges.llm.call_log_reader import CallLogUnreadable, ParsedCallLog, read_calls
from judges.registry import JudgeKind
from judges.yaml_tasks.model import is_task_file
from rubrics.result_fields import script_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadFile:
    """File of the payload."""

    path: str
    data: bytes


def call_files(result_id: str, record: ParsedCallLog, *, content: bool) -> Iterator[PayloadFile]:
    """Yield all files for a record of calls. Without ``content``, page text is removed."""
    for ref, text in sorted(record.prompts.items()):
        yield PayloadFile(path=prompt_path(ref), data=f"{text}\n".encode())
    for sha256, schema in sorted(record.schemas.items()):
        yield PayloadFile(path=schema_path(sha256), data=json_bytes(schema))
    if content:
        for sha256 in record.pieces:
            piece = record.piece(sha256)
            path = text_path(sha256) if piece.kind == "text" else evidence_path(sha256, piece.kind)
            yield PayloadFile(path=path, data=piece.data)

    def text_of(sha256: str) -> str:
        return record.piece(sha256).data.decode("utf-8") if sha256 in record.pieces else f"[{sha256}]"

    lines = [
        json.dumps(call if content else redact_call(call, text_of), ensure_ascii=False, sort_keys=True)
        for call in record.calls
    ]
    yield PayloadFile(
        path=calls_path(result_id), data="".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    )


_MEDIA_TYPES: Mapping[str, str] = {
    "text": "text/plain; charset=utf-8",
    "hidden_text": "text/plain; charset=utf-8",
    "links": "application/json",
    "places": "application/json",
    "html": "text/html",
    "pdf": "application/pdf",
}
_DEFAULT_MEDIA_TYPE = "image/jpeg"


class CaptureLookup(Protocol):
    """Lookup of capture records by id."""

    async def get(self, capture_id: str) -> Capture | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceStores:
    """Stores that the export reads from, and the redactor for secrets of this installation."""

    blobs: BlobStore
    captures: CaptureLookup
    redactor: Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """Summary of an exported bundle. ``absent`` lists files that could not be included."""

    root: str
    bytes: int
    files: int
    results: tuple[str, ...]
    absent: tuple[AbsentFile, ...]


async def export_bundle(
    stores: EvidenceStores, results: AgentResults, out: Path, *, content: bool = True, wacz: bool = False
) -> ExportReport:
    """Write the bundle for ``results`` to ``out``. The file is created completely or not at all.

    ``content=False`` leaves out page content and keeps hashes, URLs and short quotes. ``wacz`` adds the captures as a
    web archive that replay programs open.

    Raises:
        BundleError: ``out`` cannot be written.
        BlobStoreFailed, IndexFailed: stored data cannot be read.
    """
    try:
        with atomic_file(out) as file:
            return await _Export(stores, results, file, content=content, wacz=wacz and content).run()
    except OSError as error:
        raise BundleError(f"Cannot write {out}: {error.strerror or error}") from error


_DRAFT_SUFFIX = ".bundle-part"


@contextmanager
def atomic_file(target: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that is renamed to ``target`` unless the block raises. Raises OSError.

    A temporary file that a killed process left behind is removed by the next write to the same folder.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_stale_drafts(target.parent)
    draft = target.with_name(f".{uuid4().hex}{_DRAFT_SUFFIX}")
    try:
        with draft.open("x+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
            file.flush()
            os.fsync(file.fileno())
            draft.replace(target)
        sync_file(target.parent)
    finally:
        draft.unlink(missing_ok=True)


def remove_stale_drafts(folder: Path) -> int:
    """Remove temporary files that no process has locked. Return the number of removed files."""
    removed = 0
    for draft in folder.glob(f".*{_DRAFT_SUFFIX}"):
        try:
            with draft.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                draft.unlink(missing_ok=True)
                removed += 1
        except OSError:
            continue  # locked by another process, or already renamed
    return removed


class _Export:
    def __init__(
        self, stores: EvidenceStores, results: AgentResults, file: BinaryIO, *, content: bool, wacz: bool
    ) -> None:
        self._stores = stores
        self._results = results
        self._file = file
        self._bag = BagWriter(file, f"assay-{results.agent}")
        self._index = Index(agent=results.agent, content=content)
        self._content = content
        self._archive = CapturesArchive() if wacz else None
        self._sizes: dict[str, int] = {}
        self._masked: set[str] = set()
        self._captures: dict[str, Capture] = {}
        self._absent: dict[str, str] = {}

    async def run(self) -> ExportReport:
        for source in self._results.judged:
            await self._put_result(source)
        self._index.without_result = [
            {"task_id": answer.task_id, "answer_name": answer.answer_name, "error_code": answer.error_code}
            for answer in self._results.unjudged
        ]
        if self._archive is not None:
            with self._archive.build() as wacz:
                await asyncio.to_thread(self._write_file, WACZ, iter(lambda: wacz.read(1 << 20), b""))
        self._index.absent = [AbsentFile(path=path, reason=self._absent[path]) for path in sorted(self._absent)]
        await self._put(INDEX, self._index.to_bytes(), maskable=True)
        evidence_until = evidence_date(self._captures.values())
        crate = crate_metadata(self._index, self._sizes, self._captures, evidence_until)
        await self._put(PREVIEW, crate_preview(self._index, evidence_until), maskable=True)
        await self._put(CRATE, json_bytes(crate), maskable=True)
        root = await asyncio.to_thread(self._bag.finish, bag_info(self._results.agent, evidence_until))
        return ExportReport(
            root=root,
            bytes=self._file.seek(0, 2),
            files=len(self._sizes),
            results=tuple(result.result_id for result in self._index.results),
            absent=tuple(self._index.absent),
        )

    async def _put_result(self, source: SourceResult) -> None:
        """Write the files of one result, in a fixed order."""
        result = source.result
        script = script_of(result)
        script_sha256, script_suffix = await self._put_script(script.get("sha256"))
        await self._put(result_path(source.id), self._result_bytes(source, result), maskable=True)
        trees = [part.get("verification_tree") for part in result.get("eval_breakdown") or []]
        trees = trees if self._content else truncate_values(trees)
        await self._put(tree_path(source.id), json_bytes(trees), maskable=True)
        self._index.results.append(
            IndexedResult(
                result_id=source.id,
                task_id=source.task_id,
                answer_name=source.answer_name,
                answer=await self._put_answer(source, result),
                script=script_sha256,
                script_suffix=script_suffix,
                kind=str(script.get("kind", JudgeKind.NATIVE.value)),
                calls=await self._put_calls(source.id, result),
                pages=await self._put_pages(result),
                overrides=await self._put_overrides(source, result),
            )
        )

    async def _put_overrides(self, source: SourceResult, result: dict[str, Any]) -> int:
        """Write the overrides of a result and the scores with them; return the number of overrides."""
        if source.overrides:
            document = await asyncio.to_thread(override_fields, result, source.overrides)
            if not self._content:
                document["overrides"] = [
                    {**override, "reason": truncate_text(override["reason"])} for override in document["overrides"]
                ]
            await self._put(overrides_path(source.id), json_bytes(document), maskable=True)
        return len(source.overrides)

    def _result_bytes(self, source: SourceResult, result: dict[str, Any]) -> bytes:
        if self._content:
            return source.body
        return json_bytes(truncate_values(result))

    async def _put_answer(self, source: SourceResult, result: Mapping[str, Any]) -> str | None:
        expected = result.get("answer_sha256")
        if source.answer is None:
            self._mark_absent(answer_path(str(expected)), "the answer is no longer stored")
            return None
        sha256 = Answer(name=source.answer_name, text=source.answer.decode("utf-8", "replace")).sha256
        if expected not in (None, sha256):
            self._mark_absent(answer_path(str(expected)), "the answer has changed since it was judged")
            return None
        return sha256 if await self._put(answer_path(sha256), source.answer) else None

    async def _put_script(self, sha256: object) -> tuple[str | None, ScriptSuffix]:
        """Write a judge file. Return its hash, None if it is not in the bundle, and its suffix."""
        if not isinstance(sha256, str):
            return None, "py"  # the judge was declared in a running program, not in a file
        suffixes: tuple[ScriptSuffix, ...] = ("py", "yaml")
        for suffix in suffixes:
            if script_path(sha256, suffix) in self._sizes:
                return sha256, suffix
        try:
            script = await self._stores.blobs.get_from_area(BlobArea.SCRIPTS, sha256)
        except (BlobMissing, BlobCorrupt) as error:
            self._mark_absent(script_path(sha256), error.detail)
            return None, "py"
        suffix = "yaml" if await asyncio.to_thread(is_task_file, script) else "py"
        return sha256 if await self._put(script_path(sha256, suffix), script) else None, suffix

    async def _put_calls(self, result_id: str, result: Mapping[str, Any]) -> int | None:
        calls = result.get("calls")
        if not isinstance(calls, Mapping):
            self._mark_absent(calls_path(result_id), "no record of model calls was stored")
            return None
        sha256 = str(calls["sha256"])
        try:
            log = await self._stores.blobs.get_from_area(BlobArea.CALLS, sha256)
            record = await asyncio.to_thread(read_calls, log)
        except (BlobMissing, BlobCorrupt) as error:
            self._mark_absent(calls_path(result_id), error.detail)
            return None
        except CallLogUnreadable as error:
            self._mark_absent(calls_path(result_id), str(error))
            return None
        for piece in record.left_out:
            self._mark_absent(f"texts/{piece}", "it exceeded the size limit of the call record")
        files, paths = call_files(result_id, record, content=self._content), set[str]()
        while (file := await asyncio.to_thread(next, files, None)) is not None:
            paths.add(file.path)
            await self._put_call_file(file)
        if self._content:
            await self._put_call_log(sha256, log, paths)
        return len(record.calls)

    async def _put_call_log(self, sha256: str, log: bytes, paths: set[str]) -> None:
        """Write the stored call log, whose hash is in the result.

        It is compressed, so a secret in it is found only in the files at ``paths``, which have the same content.
        """
        if paths & (self._masked | self._absent.keys()):
            self._mark_absent(call_log_path(sha256), "withheld: it contains a secret of this installation")
        else:
            await self._put(call_log_path(sha256), log)

    async def _put_call_file(self, file: PayloadFile) -> None:
        """Write one file of a call record. Secrets can be masked only in files that are not named by their hash."""
        named_by_hash = file.path.startswith(("texts/", "evidence/", "schemas/"))
        await self._put(file.path, file.data, maskable=not named_by_hash)

    async def _put_pages(self, result: Mapping[str, Any]) -> tuple[str, ...]:
        page_ids = []
        for page in result.get("pages") or []:
            page_id = page.get("page_id")
            if not isinstance(page_id, str) or not NAME_PATTERN.fullmatch(page_id):
                continue
            page_ids.append(page_id)
            if page_id not in self._captures and capture_path(page_id) not in self._absent:
                await self._put_page(page_id, page)
        return tuple(page_ids)

    async def _put_page(self, page_id: str, page: Mapping[str, Any]) -> None:
        capture = await self._stores.captures.get(page_id)
        if capture is None:
            self._mark_absent(capture_path(page_id), "the record of this capture has been removed")
            media_types = {name: _MEDIA_TYPES.get(name, _DEFAULT_MEDIA_TYPE) for name in page.get("bodies") or {}}
            bodies = {name: (sha256, media_types[name]) for name, sha256 in (page.get("bodies") or {}).items()}
        else:
            self._captures[page_id] = capture
            await self._put(capture_path(page_id), json_bytes(capture_to_json(capture)), maskable=True)
            bodies = {name: (blob.sha256, blob.media_type) for name, blob in capture.blobs.items()}
        if not self._content:
            return
        page_bodies: dict[str, bytes] = {}
        for name, (sha256, media_type) in sorted(bodies.items()):
            data = await self._put_evidence(sha256, media_type)
            if data is not None and name in ("text", "html", "pdf"):
                page_bodies[name] = data
        if self._archive is not None and capture is not None:
            await asyncio.to_thread(self._archive.add, capture, page_bodies)

    async def _put_evidence(self, sha256: str, media_type: str) -> bytes | None:
        path = evidence_path(sha256, media_type)
        if path in self._absent or (path in self._sizes and self._archive is None):
            return None
        try:
            data = await self._stores.blobs.get(sha256)
        except (BlobMissing, BlobCorrupt) as error:
            self._mark_absent(path, error.detail)
            return None
        return data if await self._put(path, data) else None

    async def _put(self, path: str, data: bytes, *, maskable: bool = False) -> bool:
        """Write a file unless it was already written. Return whether the bundle contains it.

        A file that contains a secret is masked if it is ``maskable``. Otherwise it is left out, because its name is the
        hash of its content.
        """
        if path in self._sizes:
            return True
        if self._stores.redactor.contains_secret(data):
            if not maskable:
                self._mark_absent(path, "withheld: it contains a secret of this installation")
                return False
            data = self._stores.redactor.mask_known(data.decode("utf-8", "replace")).encode()
            self._masked.add(path)
        await asyncio.to_thread(self._write_file, path, [data])
        return True

    def _write_file(self, path: str, chunks: Any) -> None:
        size = 0

        def counted() -> Any:
            nonlocal size
            for chunk in chunks:
                size += len(chunk)
                yield chunk

        self._bag.add(path, counted())
        self._sizes[path] = size

    def _mark_absent(self, path: str, reason: str) -> None:
        self._absent.setdefault(path, reason)

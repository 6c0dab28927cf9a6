"""Export of bundles: the newest result of each answer of an agent, with its evidence.

Files are written in a fixed order, so equal results give equal bytes. At most one file is in memory at a time.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from answers.submission import NAME_PATTERN, Answer
from app.api.reviews import override_fields
from app.engine.result_folder import ResultUnreadable
from app.features.bundles.archive import (
    AbsentFile,
    BundledResult,
    BundleError,
    BundleWriter,
    Manifest,
    UnjudgedAnswer,
    evidence_path,
    json_bytes,
    new_bundle,
    script_paths,
)
from app.features.bundles.verification import pages_of
from app.observability.logs import Redactor
from app.storage.database import Database
from app.storage.overrides import Override, overrides_of
from app.storage.results import answers_of, judged_text
from cache.blobs import BlobArea, BlobStore
from cache.capture_index import CaptureIndex, capture_to_json
from cache.errors import BlobCorrupt, BlobMissing
from judges.llm.call_recording import CallLogUnreadable, read_calls
from judges.result import AnswerFolder, judged_folders
from judges.yaml_tasks.model import is_task_file
from rubrics.tree_json import script_sha256_of

_MASKABLE = ("results/", "overrides/", "captures/")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceResult:
    """Result of one answer.

    ``body`` is the stored result byte for byte. ``answer`` is None if the answer is no longer stored. ``overrides`` are
    in chronological order.
    """

    id: str
    task_id: str
    answer_name: str
    body: bytes
    answer: bytes | None
    overrides: Sequence[Override] = ()

    @property
    def result(self) -> dict[str, Any]:
        """Parsed result. Parsed on each access, so that memory does not grow with the number of results."""
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResults:
    """Results of an agent, ordered by task and answer."""

    agent: str
    judged: tuple[SourceResult, ...]
    unjudged: tuple[UnjudgedAnswer, ...] = ()


async def from_database(database: Database, agent: str, tasks: Collection[str]) -> AgentResults:
    """Return the results that the service has stored. An empty ``tasks`` selects all tasks.

    Raises:
        BundleError: there is no matching result.
        DatabaseUnavailable: the database cannot be read.
    """
    judged: list[SourceResult] = []
    unjudged: list[UnjudgedAnswer] = []
    async with database.begin() as connection:
        for row in await answers_of(connection, agent):
            if tasks and row.task_id not in tasks:
                continue
            named = {"task_id": row.task_id, "answer_name": row.answer_name}
            if row.body is None:
                unjudged.append(UnjudgedAnswer(**named, error_code=row.error_code))
                continue
            result_id = str(json.loads(row.body)["id"])
            text = await judged_text(connection, result_id)
            overrides = await overrides_of(connection, [result_id])
            judged.append(
                SourceResult(
                    id=result_id,
                    body=row.body.encode("utf-8", "replace"),
                    answer=None if text is None else text.encode("utf-8", "replace"),
                    overrides=overrides.get(result_id, ()),
                    **named,
                )
            )
    return _sorted_results(agent, judged, unjudged, tasks)


async def from_folder(out: Path, agent: str, tasks: Collection[str]) -> AgentResults:
    """Return the results that ``assay evaluate`` wrote to ``out``.

    Raises:
        BundleError: there is no matching result.
        ResultUnreadable: a result file cannot be read or is not a JSON object.
    """

    def read() -> list[SourceResult]:
        folders = judged_folders(out, agent, tasks)
        return [_read_result(folder, path) for folder in folders if (path := folder.newest_result()) is not None]

    return _sorted_results(agent, await asyncio.to_thread(read), [], tasks)


def _read_result(folder: AnswerFolder, path: Path) -> SourceResult:
    try:
        body = path.read_bytes()
        result = json.loads(body)
    except (OSError, ValueError) as error:
        raise ResultUnreadable(f"Cannot read the result {path}: {error}") from error
    if not isinstance(result, Mapping):
        raise ResultUnreadable(f"{path} is not a result: expected a JSON object")
    stored_id = str(result.get("id") or "")
    try:
        answer = folder.answer_copy.read_bytes()
    except OSError:
        answer = None
    return SourceResult(
        id=stored_id if NAME_PATTERN.fullmatch(stored_id) else f"res_{hashlib.sha256(body).hexdigest()[:26]}",
        task_id=folder.task_id,
        answer_name=folder.answer_name,
        body=body,
        answer=answer,
    )


def _sorted_results(
    agent: str, judged: list[SourceResult], unjudged: list[UnjudgedAnswer], tasks: Collection[str]
) -> AgentResults:
    if not judged:
        scope = f" for {', '.join(sorted(tasks))}" if tasks else ""
        raise BundleError(f"agent {agent} has no results{scope}")
    ordered = sorted(judged, key=lambda result: (result.task_id, result.answer_name))
    return AgentResults(agent=agent, judged=tuple(ordered), unjudged=tuple(unjudged))


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceStores:
    """Stores that the export reads from, and the redactor for secrets of this installation."""

    blobs: BlobStore
    captures: CaptureIndex
    redactor: Redactor


async def export_bundle(stores: EvidenceStores, results: AgentResults, out: Path, *, content: bool = True) -> Manifest:
    """Write the bundle for ``results`` to ``out``, completely or not at all, and return its manifest.

    ``content=False`` leaves out the bodies of pages, and the call logs, which contain them.

    Raises:
        BundleError: ``out`` cannot be written.
        BlobStoreFailed, IndexFailed: stored data cannot be read.
    """
    try:
        with new_bundle(out) as writer:
            export = _Export(stores, writer, content=content)
            for source in results.judged:
                await export.put_result(source)
            manifest = Manifest(
                agent=results.agent,
                content=content,
                results=tuple(export.results),
                without_result=results.unjudged,
                absent=tuple(AbsentFile(path=path, reason=why) for path, why in sorted(export.absent.items())),
            )
            if stores.redactor.contains_secret((text := manifest.model_dump_json()).encode()):
                manifest = Manifest.model_validate_json(stores.redactor.mask_known(text))
            await asyncio.to_thread(writer.finish, manifest.model_dump())
    except OSError as error:
        raise BundleError(f"Cannot write {out}: {error.strerror or error}") from error
    return manifest.model_copy(update={"files": tuple(writer.files.values())})


class _Export:
    def __init__(self, stores: EvidenceStores, writer: BundleWriter, *, content: bool) -> None:
        self._stores = stores
        self._writer = writer
        self._content = content
        self.results: list[BundledResult] = []
        self.absent: dict[str, str] = {}

    async def put_result(self, source: SourceResult) -> None:
        """Write the files of one result, in a fixed order."""
        result = source.result
        await self._put(f"results/{source.id}.json", source.body)
        if source.overrides:
            document = await asyncio.to_thread(override_fields, result, source.overrides)
            await self._put(f"overrides/{source.id}.json", json_bytes(document))
        await self._put_answer(source, result)
        await self._put_script(script_sha256_of(result))
        if self._content:
            await self._put_call_log(result)
        for page in pages_of(result, copies=True):
            await self._put_page(page["page_id"])
        self.results.append(
            BundledResult(
                result_id=source.id,
                task_id=source.task_id,
                answer_name=source.answer_name,
                overrides=len(source.overrides),
            )
        )

    async def _put_answer(self, source: SourceResult, result: Mapping[str, Any]) -> None:
        expected = result.get("answer_sha256")
        if source.answer is None:
            self.absent.setdefault(f"answers/{expected}.md", "the answer is no longer stored")
            return
        sha256 = Answer(name=source.answer_name, text=source.answer.decode("utf-8", "replace")).sha256
        if expected not in (None, sha256):
            self.absent.setdefault(f"answers/{expected}.md", "the answer has changed since it was judged")
        else:
            await self._put(f"answers/{sha256}.md", source.answer)

    async def _put_script(self, sha256: object) -> None:
        if not isinstance(sha256, str):
            return  # the judge was declared in a running program, not in a file
        python, yaml = script_paths(sha256)
        try:
            script = await self._stores.blobs.get_from_area(BlobArea.SCRIPTS, sha256)
        except (BlobMissing, BlobCorrupt) as error:
            self.absent.setdefault(python, error.detail)
            return
        await self._put(yaml if await asyncio.to_thread(is_task_file, script) else python, script)

    async def _put_call_log(self, result: Mapping[str, Any]) -> None:
        calls = result.get("calls")
        if not isinstance(calls, Mapping):
            return  # the verification says so
        path = f"call-logs/{calls['sha256']}.log"
        try:
            log = await self._stores.blobs.get_from_area(BlobArea.CALLS, str(calls["sha256"]))
            has_secret = await asyncio.to_thread(self._has_secret_inside, log)
        except (BlobMissing, BlobCorrupt) as error:
            self.absent.setdefault(path, error.detail)
        except CallLogUnreadable as error:
            self.absent.setdefault(path, str(error))
        else:
            if has_secret:
                self.absent.setdefault(path, "withheld: it contains a secret of this installation")
            else:
                await self._put(path, log)

    def _has_secret_inside(self, log: bytes) -> bool:
        """Return whether a call log, which is compressed, contains a secret. Raises CallLogUnreadable."""
        record, redactor = read_calls(log), self._stores.redactor
        head = json.dumps([record.calls, dict(record.prompts), dict(record.schemas)], ensure_ascii=False)
        return redactor.contains_secret(head.encode("utf-8", "replace")) or any(
            redactor.contains_secret(record.piece(sha256).data) for sha256 in record.pieces
        )

    async def _put_page(self, page_id: str) -> None:
        path = f"captures/{page_id}.json"
        if path in self._writer.files or path in self.absent:
            return
        capture = await self._stores.captures.get(page_id)
        if capture is None:
            self.absent[path] = "the record of this capture has been removed"
            return
        await self._put(path, json_bytes(capture_to_json(capture)))
        if self._content:
            for _, blob in sorted(capture.blobs.items()):
                await self._put_body(evidence_path(blob.sha256, blob.media_type), blob.sha256)

    async def _put_body(self, path: str, sha256: str) -> None:
        if path in self.absent or path in self._writer.files:
            return
        try:
            await self._put(path, await self._stores.blobs.get(sha256))
        except (BlobMissing, BlobCorrupt) as error:
            self.absent[path] = error.detail

    async def _put(self, path: str, data: bytes) -> None:
        """Write a file unless it was already written.

        A file that contains a secret is masked, or left out if its name is the hash of its content.
        """
        if path in self._writer.files or path in self.absent:
            return
        if self._stores.redactor.contains_secret(data):
            if not path.startswith(_MASKABLE):
                self.absent[path] = "withheld: it contains a secret of this installation"
                return
            data = self._stores.redactor.mask_known(data.decode("utf-8", "replace")).encode()
        await asyncio.to_thread(self._writer.add, path, data)

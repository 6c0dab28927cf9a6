"""Replay of a bundle: its judges run again, with all pages and model replies served from the bundle.

This reproduces the claims of the judges, their order, and the use of the verdicts. Task files are code of the bundle's
author: each one runs in a confined process without API keys, within the limits of task files. There is no network and
no model. Each request that the bundle cannot answer is a difference.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, SecretStr

from answers.submission import Answer
from app.engine import pipeline
from app.engine.judge_files import load_catalogue
from app.engine.model_clients import Limits, ModelClients
from app.engine.pipeline import AnswerPages
from app.engine.runtime import Runtime, create_fork_server_pool
from app.features.bundles.archive import (
    BundledResult,
    BundleReader,
    BundleRefused,
    evidence_path,
    open_bundle,
    script_paths,
)
from app.features.bundles.verification import (
    MALFORMED,
    CheckedResult,
    Report,
    pages_of,
    read_capture,
    read_result,
    verify_open,
)
from app.observability.logs import Redactor
from app.settings import Settings
from cache.backends.documents import Document, read_document
from cache.blobs import BlobStore
from cache.capture import Capture, CaptureOutcome, CaptureSource, EvidencePolicy, Observation
from cache.capture_index import MemoryIndex
from cache.pages import PageCache
from judges.analysis.recomputation import ReplayDifference, rejudged_differences
from judges.errors import (
    JudgeError,
    LLMBudgetExceeded,
    LLMError,
    LLMOutputUnusable,
    LLMRejected,
    LLMTimeout,
    LLMUnavailable,
    ShorterPage,
    UnusableKind,
)
from judges.forbidden_sources import ForbiddenSource
from judges.isolation.fork_server_pool import ForkServerPool
from judges.llm.cached import parse_stored
from judges.llm.call_recording import CallLogUnreadable, portable_request_key, read_calls, recorded_request_key
from judges.llm.client import LLMClient, LLMReply, LLMRequest, StoredReply
from judges.llm.parameters import RunParameters
from judges.llm.providers import LEXICAL
from judges.loader import JudgeCatalogue
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.voting import members_in
from mind2web2.external_services import use_services
from mind2web2.local_services import LocalServices
from mind2web2.task_pages import TaskFolder
from rubrics.tree_json import script_sha256_of
from rubrics.verdict import Reason, Usage

UNKNOWN_REQUEST_TIMEOUT_S: Final = 2.0
"""Seconds before a request that is not in the bundle fails. The original request may have been cancelled because
another page supported the claim. The rerun cancels it as well within this time, and nothing counts as missing."""

_SHOWN_CHARS = 160


class RecordedFault(BaseModel):
    """Error of a call that gave no usable reply."""

    reason: str | None
    message: str


class RecordedShorterPage(BaseModel):
    """Shorter page of a call whose whole page was rejected as too long."""

    refusal: str
    page_chars: int


class RecordedCall(BaseModel):
    """Outcome of one recorded call: its reply or its fault."""

    reply: str | None = None
    by: str = ""
    usage: Usage
    fault: RecordedFault | None = None
    text_only: bool = False
    shortened: RecordedShorterPage | None = None

    @property
    def shorter_page(self) -> ShorterPage | None:
        cut = self.shortened
        return None if cut is None else ShorterPage(refusal=cut.refusal, page_chars=cut.page_chars)


class MissingRequests:
    """Requests that the bundle cannot answer, in order of first occurrence."""

    def __init__(self, *, timeout_s: float) -> None:
        self.descriptions: dict[str, None] = {}
        self._timeout_s = timeout_s

    def add(self, description: str) -> None:
        self.descriptions.setdefault(description)

    async def add_unless_cancelled(self, description: str) -> None:
        """Wait for the timeout, then add a request. See ``UNKNOWN_REQUEST_TIMEOUT_S``."""
        await asyncio.sleep(self._timeout_s)
        self.add(description)


class ReplayLLM:
    """Model client that replays recorded calls.

    A repeated request gets the next recorded reply, and the last one again when none is left.
    """

    def __init__(self, calls: Mapping[str, list[RecordedCall]], missing: MissingRequests) -> None:
        self._remaining = {key: deque(recorded) for key, recorded in calls.items()}
        self._missing = missing

    async def complete(self, request: LLMRequest) -> LLMReply:
        key = await asyncio.to_thread(portable_request_key, request)
        recorded = self._remaining.get(key)
        if not recorded:
            await self._missing.add_unless_cancelled(f"a request to {request.model}: {_describe(request)}")
            raise LLMUnavailable("not in the bundle")
        call = recorded.popleft() if len(recorded) > 1 else recorded[0]
        if call.fault is not None:
            fault = _fault(call.fault, call.usage)
            fault.shorter_page = call.shorter_page
            raise fault
        stored = StoredReply(
            text=call.reply or "", model=call.by, text_only=call.text_only, shorter_page=call.shorter_page
        )
        reply = parse_stored(request, stored)
        if reply is None:
            self._missing.add(f"a usable reply to {_describe(request)}")
            raise LLMOutputUnusable(
                UnusableKind.OFF_SCHEMA, "the reply in the bundle does not match the schema of the request"
            )
        return reply

    async def aclose(self) -> None:
        """Do nothing: no connection was opened."""


class Offline:
    """Browser and tools of task scripts without network access. Model requests go to the replay client.

    Implements ``Capturer``, ``LiveBrowser`` and ``ExternalServices``.
    """

    def __init__(self, model: LLMClient, missing: MissingRequests) -> None:
        self.client = model
        self._missing = missing

    async def capture(self, url: str) -> Observation:
        await self._missing.add_unless_cancelled(f"the page {url}")
        return Observation(
            url=url,
            outcome=CaptureOutcome.EGRESS_DENIED,
            captured_at=datetime.now(UTC),
            duration_s=0.0,
            backend="bundle",
            detail="not in the bundle",
        )

    async def observe(self, url: str, *, once: bool = False) -> Observation:
        return await self.capture(url)

    async def fetch(self, url: str, *, deadline_s: float = 0.0) -> Observation:
        return await self.capture(url)

    async def read_document(self, data: bytes, content_type: str, *, deadline_s: float) -> Document:
        return await read_document(data, content_type, deadline_s=deadline_s)

    def live_pages(self, max_pages: int, *, deadline_s: float = 0.0) -> Offline:
        return self

    def maps(self, *, base_url: str, timeout_s: float) -> Any:
        self._missing.add("a request to the Maps API")
        raise ValueError("replies of the Maps API are not in the bundle")

    def model(self, provider: str) -> LLMClient:
        return self.client

    async def open(self) -> None:
        """Do nothing: there is no browser to open."""

    async def aclose(self) -> None:
        """Do nothing: no connection was opened."""


def _describe(request: LLMRequest) -> str:
    question = request.parts.get("claim") or request.parts.get("prompt") or str(request.messages[-1].get("content"))
    return f"{request.prompt or request.purpose}, vote {request.vote}: {question[:_SHOWN_CHARS]}"


def _fault(fault: RecordedFault, usage: Usage) -> LLMError:
    """Recreate the recorded error from its reason."""
    message = fault.message
    match fault.reason:
        case Reason.LLM_REJECTED | Reason.PAGE_NOT_FULLY_SEEN:
            rejected = LLMRejected(message, usage=usage)
            rejected.reason = Reason(fault.reason)
            return rejected
        case Reason.LLM_OUTPUT_UNUSABLE:
            return LLMOutputUnusable(UnusableKind.OFF_SCHEMA, message, usage=usage)
        case Reason.BUDGET:
            return LLMBudgetExceeded(message, usage=usage)
        case Reason.TIMEOUT:
            return LLMTimeout(message, usage=usage)
        case _:
            return LLMUnavailable(message, usage=usage)


_NO_KEY = SecretStr("none")


async def replay(path: Path, settings: Settings, *, timeout_s: float = UNKNOWN_REQUEST_TIMEOUT_S) -> Report:
    """Verify a bundle, judge its answers again, and return the report with the differences of trees and figures.

    Nothing runs if the verification finds a problem. Script limits of ``settings`` apply.

    Raises:
        BundleRefused: the file is not a valid bundle or is unsafe.
        IsolationFailed: no process can be started for a task file.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-replay-")))
        bundle = await asyncio.to_thread(stack.enter_context, open_bundle(path))
        report = await asyncio.to_thread(verify_open, bundle)
        if not report.valid:
            return report
        settings = settings.model_copy(
            update={
                "data_dir": folder,
                "isolate": True,
                "openai_api_key": _NO_KEY,
                "openai_base_url": None,
                "google_maps_api_key": None,
                "budget_usd": None,
                "budget_tokens": None,
            }
        )
        process_pool = create_fork_server_pool(settings)
        stack.push_async_callback(process_pool.aclose)
        stack.callback(use_services, LocalServices())
        replayer = _Replay(bundle, folder, settings, process_pool, timeout_s)
        await replayer.load_judges()
        entries = zip(bundle.manifest.results, report.results, strict=True)
        return replace(report, results=tuple([await replayer.judge_again(*each) for each in entries]))


def _recorded_folder(recorded: Mapping[str, Any], replayed: _ReplayRuntime) -> TaskFolder | None:
    """Return what the script has read in the page cache of its task; None if that is nothing."""
    if recorded.get("page_cache") is None:
        return None
    try:
        return TaskFolder.recorded(recorded["page_cache"], replayed.index.find_sync)
    except MALFORMED as error:
        raise BundleRefused(f"the result {recorded.get('id')} has an invalid page_cache: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReplayRuntime:
    """Runtime that serves the pages and replies of one result."""

    runtime: Runtime
    offline: Offline
    missing: MissingRequests
    index: MemoryIndex
    captures: Mapping[str, Capture]


class _Replay:
    def __init__(
        self,
        bundle: BundleReader,
        folder: Path,
        settings: Settings,
        process_pool: ForkServerPool,
        timeout_s: float,
    ) -> None:
        self._bundle = bundle
        self._folder = folder
        self._settings = settings
        self._process_pool = process_pool
        self._timeout_s = timeout_s
        self._blobs = BlobStore.open((folder / "blobs").as_uri())
        self._catalogues: dict[tuple[str, str], JudgeCatalogue] = {}

    async def load_judges(self) -> None:
        """Write the task files to folders, and load them. Only one file of a task fits into a folder."""
        folders: list[dict[str, str]] = []
        for entry in self._bundle.manifest.results:
            script = script_sha256_of(await asyncio.to_thread(read_result, self._bundle, entry))
            if not isinstance(script, str) or self._script_path(script) is None:
                continue
            if all(folder.setdefault(entry.task_id, script) != script for folder in folders):
                folders.append({entry.task_id: script})
        for number, scripts in enumerate(folders):
            folder = await asyncio.to_thread(self._write_scripts, scripts, number)
            settings = self._settings.model_copy(update={"judges": (folder,)})
            catalogue = await load_catalogue(settings, self._process_pool)
            self._catalogues |= {(task_id, script): catalogue for task_id, script in scripts.items()}

    def _script_path(self, sha256: str) -> str | None:
        return next((path for path in script_paths(sha256) if path in self._bundle), None)

    def _write_scripts(self, scripts: Mapping[str, str], number: int) -> Path:
        folder = self._folder / "judges" / str(number)
        folder.mkdir(parents=True)
        for task_id, sha256 in scripts.items():
            path = str(self._script_path(sha256))
            (folder / f"{task_id}.{path.rpartition('.')[2]}").write_bytes(self._bundle.read(path))
        return folder

    async def judge_again(self, entry: BundledResult, checked: CheckedResult) -> CheckedResult:
        """Judge one result again and compare it with the recorded one."""
        recorded = await asyncio.to_thread(read_result, self._bundle, entry)
        obstacle = self._obstacle(entry, recorded)
        if obstacle is not None:
            return replace(checked, unchecked=f"it cannot be judged again: {obstacle}")
        replayed = await asyncio.to_thread(self._replay_runtime, entry, recorded)
        use_services(replayed.offline)
        try:
            differences = list(rejudged_differences(recorded, await self._judge(entry, recorded, replayed)))
        except JudgeError as error:
            what = f"{type(error).__name__}: {error}"
            differences = [ReplayDifference(where="its judge", recorded="a result", recomputed=what)]
        finally:
            await replayed.runtime.pages.aclose()
            await replayed.runtime.models.aclose()
        missing = [
            ReplayDifference(where="asked for", recorded="not in the bundle", recomputed=description)
            for description in replayed.missing.descriptions
        ]
        if missing or differences:
            return replace(checked, differences=(*missing, *differences))
        return replace(checked, unchecked=None, not_compared=())  # everything that counts was reproduced

    def _obstacle(self, entry: BundledResult, recorded: Mapping[str, Any]) -> str | None:
        if not self._bundle.manifest.content:
            return "the bundle was made without content"
        catalogue = self._catalogues.get((entry.task_id, str(script_sha256_of(recorded))))
        if catalogue is None or _answer_path(recorded) not in self._bundle or _log_path(recorded) not in self._bundle:
            return "its task file, its answer or its call log is not in the bundle"
        if entry.task_id in catalogue.broken:
            return catalogue.broken[entry.task_id]
        return None if entry.task_id in catalogue.judges else f"its task file does not define the task {entry.task_id}"

    async def _judge(
        self, entry: BundledResult, recorded: Mapping[str, Any], replayed: _ReplayRuntime
    ) -> dict[str, Any]:
        answer = await asyncio.to_thread(self._bundle.read, _answer_path(recorded))
        members = members_in(str(recorded.get("model")))
        return await pipeline.evaluate(
            replayed.runtime,
            pipeline.JudgingCase(
                judge=replayed.runtime.judge(entry.task_id),
                agent=self._bundle.manifest.agent,
                answer=Answer(name=entry.answer_name, text=answer.decode("utf-8", "replace")),
                owner=_owner_of_pages(recorded),
                # The provider does not matter here: replies come from the bundle.
                model=",".join(LEXICAL if name == LEXICAL else f"openai/{name}" for name in members),
                parameters=RunParameters.of_result(recorded) or RunParameters(),
                folder=_recorded_folder(recorded, replayed),
            ),
            wrap_client=lambda _: replayed.offline.client,
            pages=_supplied_pages(recorded, replayed),
        )

    def _replay_runtime(self, entry: BundledResult, recorded: Mapping[str, Any]) -> _ReplayRuntime:
        missing = MissingRequests(timeout_s=self._timeout_s)
        index = MemoryIndex()
        captures: dict[str, Capture] = {}
        for page in pages_of(recorded):
            page_id = page["page_id"]
            if f"captures/{page_id}.json" in self._bundle:
                capture = read_capture(self._bundle, page_id)
                index.record_sync(capture)
                captures[page_id] = capture
                self._write_bodies(capture)
        calls: dict[str, list[RecordedCall]] = defaultdict(list)
        for key, call in self._calls(_log_path(recorded)):
            calls[key].append(call)
        offline = Offline(ReplayLLM(calls, missing), missing)
        limits = Limits.from_settings(self._settings)
        block_builder = BlockBuilder(hashlib.sha256(entry.result_id.encode()).digest())
        runtime = Runtime(
            settings=self._settings.model_copy(update={"forbidden_sources": _forbidden_sources(recorded)}),
            limits=limits,
            catalogue=self._catalogues[entry.task_id, str(script_sha256_of(recorded))],
            pages=PageCache(offline, self._blobs, index, keeps_failures=True),
            blobs=self._blobs,
            index=index,
            models=ModelClients(self._settings, limits, None, lists_models=False),
            block_builder=block_builder,
            page_preparer=PagePreparer(block_builder),
            redactor=Redactor(()),
            process_pool=self._process_pool,
        )
        return _ReplayRuntime(runtime=runtime, offline=offline, missing=missing, index=index, captures=captures)

    def _write_bodies(self, capture: Capture) -> None:
        """Write the bodies of a page to the store, under their hashes, which the verification has checked."""
        for blob in capture.blobs.values():
            path = evidence_path(blob.sha256, blob.media_type)
            target = self._folder / "blobs" / "sha256" / blob.sha256[:2] / blob.sha256
            if path in self._bundle and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(self._bundle.read(path))

    def _calls(self, path: str) -> Iterator[tuple[str, RecordedCall]]:
        try:
            log = read_calls(self._bundle.read(path))
            for call in log.calls:
                if not call.get("called_off"):  # cancelled without a reply; a repeated request has its own entry
                    key = recorded_request_key(call, lambda sha256: log.piece(sha256).data.decode("utf-8", "replace"))
                    yield key, RecordedCall.model_validate(call)
        except (CallLogUnreadable, *MALFORMED) as error:
            raise BundleRefused(f"{path} contains an entry that is not a call: {error}") from error


def _supplied_pages(recorded: Mapping[str, Any], replayed: _ReplayRuntime) -> AnswerPages | None:
    """Return the pages of an answer that was judged on supplied ones: these, and the recorded captures."""
    supplied = [capture for capture in replayed.captures.values() if capture.source is CaptureSource.SUPPLIED]
    if not supplied:
        return None
    pages, owner = replayed.runtime.pages, _owner_of_pages(recorded)
    return AnswerPages(pages, owner=owner, supplied=supplied, policy=EvidencePolicy.SUPPLIED)


def _forbidden_sources(recorded: Mapping[str, Any]) -> tuple[ForbiddenSource, ...]:
    """Return the sources that did not count by the settings of the service."""
    try:
        return tuple(map(ForbiddenSource.model_validate, recorded.get("forbidden_sources") or ()))
    except (TypeError, ValueError) as error:
        raise BundleRefused(f"the result {recorded.get('id')} has invalid forbidden_sources: {error}") from error


def _answer_path(recorded: Mapping[str, Any]) -> str:
    return f"answers/{recorded.get('answer_sha256')}.md"


def _log_path(recorded: Mapping[str, Any]) -> str:
    calls = recorded.get("calls")
    return f"call-logs/{calls.get('sha256') if isinstance(calls, Mapping) else None}.log"


def _owner_of_pages(recorded: Mapping[str, Any]) -> str | None:
    """Return the owner whose own captures a result used; None if all of its captures are shared."""
    owners = (page.get("owner") for page in pages_of(recorded))
    return next((owner for owner in owners if isinstance(owner, str)), None)

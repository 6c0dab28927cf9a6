"""Re-run of a bundle's judge scripts, with all pages and model replies served from the bundle.

This reproduces the claims of the scripts, their order, and the use of the verdicts. The scripts are code of the
bundle's author. Each one runs in a separate process without API keys, which limits accidents but is no protection
against a malicious script.

Each request that the bundle cannot answer is recorded.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import tempfile
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, SecretStr

from answers.submission import Answer
from app.engine import pipeline
from app.engine.judge_files import load_catalogue
from app.engine.limits import Limits
from app.engine.model_clients import ModelClients
from app.engine.runtime import Runtime, create_fork_server_pool
from app.features.bundles.bundle_reader import BundleReader, open_bundle
from app.features.bundles.errors import BundleRefused
from app.features.bundles.layout import (
    IndexedResult,
    answer_path,
    calls_path,
    capture_path,
    evidence_path,
    read_capture,
    read_index,
    read_json,
    result_path,
    script_path,
    text_path,
)
from app.features.bundles.replaying import MAX_CALLS_BYTES, ReplayedResult
from app.observability.redaction import Redactor
from app.settings import Settings
from cache.backends.documents import Document, read_document
from cache.blobs import BlobStore
from cache.capture import Capture, CaptureOutcome, Observation
from cache.capture_index import MemoryIndex
from cache.pages import PageCache
from judges.analysis.replay.recomputation import rejudged_differences
from judges.analysis.replay.tree import ReplayDifference
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
from judges.isolation.fork_server_pool import ForkServerPool
from judges.llm.cached import parse_stored
from judges.llm.call_log_reader import portable_request_key, recorded_request_key
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.parameters import RunParameters
from judges.llm.providers import LEXICAL
from judges.llm.response_cache import StoredReply
from judges.loader import JudgeCatalogue
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.voting import members_in
from mind2web2.external_services import use_services
from mind2web2.live_browser import LiveBrowser
from mind2web2.local_services import LocalServices
from mind2web2.task_pages import TaskFolder
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


def group_by_key(calls: Iterable[tuple[str, RecordedCall]]) -> dict[str, list[RecordedCall]]:
    grouped: dict[str, list[RecordedCall]] = defaultdict(list)
    for key, call in calls:
        grouped[key].append(call)
    return dict(grouped)


class OfflineBrowser:
    """``Capturer`` and ``LiveBrowser`` without network access."""

    def __init__(self, missing: MissingRequests) -> None:
        self._missing = missing

    async def capture(self, url: str) -> Observation:
        return await _missing_page(url, self._missing)

    async def observe(self, url: str, *, once: bool = False) -> Observation:
        return await _missing_page(url, self._missing)

    async def open(self) -> None:
        """Do nothing: there is no browser to open."""

    async def aclose(self) -> None:
        """Do nothing: no connection was opened."""


class OfflineTools:
    """Tools of judge scripts without network access.

    Documents are parsed locally; model requests go to the replay client.
    """

    def __init__(self, model: LLMClient, missing: MissingRequests) -> None:
        self._model = model
        self._missing = missing

    async def fetch(self, url: str, *, deadline_s: float = 0.0) -> Observation:
        return await _missing_page(url, self._missing)

    async def read_document(self, data: bytes, content_type: str, *, deadline_s: float) -> Document:
        return await read_document(data, content_type, deadline_s=deadline_s)

    def live_pages(self, max_pages: int, *, deadline_s: float = 0.0) -> LiveBrowser:
        return OfflineBrowser(self._missing)

    def maps(self, *, base_url: str, timeout_s: float) -> Any:
        self._missing.add("a request to the Maps API")
        raise ValueError("replies of the Maps API are not in the bundle")

    def model(self, provider: str) -> LLMClient:
        return self._model


async def _missing_page(url: str, missing: MissingRequests) -> Observation:
    await missing.add_unless_cancelled(f"the page {url}")
    return Observation(
        url=url,
        outcome=CaptureOutcome.EGRESS_DENIED,
        captured_at=datetime.now(UTC),
        duration_s=0.0,
        backend="bundle",
        detail="not in the bundle",
    )


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


MAX_SOURCE_BYTES = 4 * 1024 * 1024
_NEVER_EXPIRES_S = timedelta(days=36_500).total_seconds()
_NO_KEY = SecretStr("none")
_SHA256 = re.compile(r"[0-9a-f]{64}")


async def rerun(
    path: Path,
    replayed_results: Sequence[ReplayedResult],
    settings: Settings,
    *,
    timeout_s: float = UNKNOWN_REQUEST_TIMEOUT_S,
) -> list[ReplayedResult]:
    """Return the replayed results extended by the differences found when the scripts run.

    Script limits of ``settings`` apply.

    Raises:
        BundleRefused: the file is not a valid bundle, or a listed file is missing.
        IsolationFailed: no process can be started for a script.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-replay-")))
        bundle = await asyncio.to_thread(stack.enter_context, open_bundle(path))
        settings = settings.model_copy(
            update={
                "data_dir": folder,
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
        rerunner = _Rerun(bundle, folder, settings, process_pool, timeout_s)
        await rerunner.unpack()
        by_id = {result.result_id: result for result in replayed_results}
        return [await rerunner.judge_again(indexed, by_id[indexed.result_id]) for indexed in rerunner.index.results]


def _recorded_folder(recorded: Mapping[str, Any], replayed: _ReplayRuntime) -> TaskFolder | None:
    """Return what the script has read in the page cache of its task; None if that is nothing."""
    if recorded.get("page_cache") is None:
        return None
    try:
        return TaskFolder.recorded(recorded["page_cache"], replayed.find)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise BundleRefused(f"the result {recorded.get('id')} has an invalid page_cache: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReplayRuntime:
    """Runtime that serves the pages and replies of one result."""

    runtime: Runtime
    model: ReplayLLM
    missing: MissingRequests
    find: Callable[[str], Capture | None]
    """Returns the capture of a canonical key."""


class _Rerun:
    def __init__(
        self,
        bundle: BundleReader,
        folder: Path,
        settings: Settings,
        process_pool: ForkServerPool,
        timeout_s: float,
    ) -> None:
        self._bundle = bundle
        self.index = read_index(bundle)
        self._folder = folder
        self._settings = settings
        self._process_pool = process_pool
        self._timeout_s = timeout_s
        self._blobs = BlobStore.open((folder / "blobs").as_uri())
        self._catalogues: dict[str, JudgeCatalogue] = {}
        self._absent = {each.path for each in self.index.absent}

    async def unpack(self) -> None:
        """Write bodies and scripts to files, and load the scripts.

        Their names are the hash and the task; names from the zip are never used.
        """
        for number, scripts in enumerate(await asyncio.to_thread(self._unpack_files)):
            folder = await asyncio.to_thread(self._unpack_scripts, scripts, number)
            settings = self._settings.model_copy(update={"judges": (folder,)})
            catalogue = await load_catalogue(settings, self._process_pool)
            self._catalogues |= {f"{task_id}/{indexed.script}": catalogue for task_id, indexed in scripts.items()}

    def _unpack_files(self) -> list[dict[str, IndexedResult]]:
        """Write bodies to files. Return a result for each script, by task; several times if a task has several."""
        by_script: dict[str, dict[str, IndexedResult]] = defaultdict(dict)
        for indexed in self.index.results:
            if indexed.script is not None:
                by_script[indexed.task_id].setdefault(indexed.script, indexed)
            for page_id in indexed.pages:
                for sha256, media_type in self._bodies(page_id):
                    self._unpack_body(sha256, media_type)
        variants = {task: list(each.values()) for task, each in by_script.items()}
        return [
            {task: each[number] for task, each in variants.items() if number < len(each)}
            for number in range(max(map(len, variants.values()), default=0))
        ]

    def _bodies(self, page_id: str) -> Iterator[tuple[str, str]]:
        capture = self._capture(page_id)
        if capture is not None and self.index.content:
            for blob in capture.blobs.values():
                yield blob.sha256, blob.media_type

    def _unpack_body(self, sha256: str, media_type: str) -> None:
        path = evidence_path(sha256, media_type)
        target = self._folder / "blobs" / "sha256" / sha256[:2] / sha256
        if path in self._absent or target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            for chunk in self._bundle.chunks(f"data/{path}"):
                file.write(chunk)

    def _unpack_scripts(self, scripts: Mapping[str, IndexedResult], number: int) -> Path:
        folder = self._folder / "judges" / str(number)
        folder.mkdir(parents=True)
        for task_id, indexed in scripts.items():
            path = script_path(str(indexed.script), indexed.script_suffix)
            source = self._bundle.read(f"data/{path}", max_bytes=MAX_SOURCE_BYTES)
            (folder / f"{task_id}.{indexed.script_suffix}").write_bytes(source)
        return folder

    async def judge_again(self, indexed: IndexedResult, replayed_result: ReplayedResult) -> ReplayedResult:
        """Judge one result again and compare it with the recorded one."""
        obstacle = self._obstacle(indexed)
        if obstacle is not None:
            return replace(replayed_result, unchecked=f"its script cannot be run again: {obstacle}")
        recorded = await asyncio.to_thread(read_json, self._bundle, result_path(indexed.result_id))
        replayed = await asyncio.to_thread(self._replay_runtime, indexed, recorded)
        use_services(OfflineTools(replayed.model, replayed.missing))
        try:
            judged = await self._judge(indexed, recorded, replayed)
        except JudgeError as error:
            differences = [
                ReplayDifference(where="its script", recorded="a result", recomputed=f"{type(error).__name__}: {error}")
            ]
        else:
            differences = list(rejudged_differences(recorded, judged))
        finally:
            await replayed.runtime.pages.aclose()
            await replayed.runtime.models.aclose()
        missing = [
            ReplayDifference(where="asked for", recorded="not in the bundle", recomputed=description)
            for description in replayed.missing.descriptions
        ]
        return replace(
            replayed_result,
            differences=(*replayed_result.differences, *missing, *differences),
            unchecked=None if not missing and not differences else replayed_result.unchecked,
        )

    def _obstacle(self, indexed: IndexedResult) -> str | None:
        if not self.index.content:
            return "the bundle was made without content"
        if indexed.script is None or indexed.answer is None or indexed.calls is None:
            return "its script, its answer or its call record is not in the bundle"
        catalogue = self._catalogues[f"{indexed.task_id}/{indexed.script}"]
        return catalogue.broken.get(indexed.task_id)

    async def _judge(
        self, indexed: IndexedResult, recorded: Mapping[str, Any], replayed: _ReplayRuntime
    ) -> dict[str, Any]:
        answer = await asyncio.to_thread(self._bundle.read, f"data/{answer_path(str(indexed.answer))}")
        members = members_in(str(recorded.get("model")))
        return await pipeline.evaluate(
            replayed.runtime,
            judge=replayed.runtime.judge(indexed.task_id),
            agent=self.index.agent,
            answer=Answer(name=indexed.answer_name, text=answer.decode("utf-8", "replace")),
            owner=_owner_of_pages(recorded),
            # The provider does not matter here: replies come from the bundle.
            model=",".join(LEXICAL if name == LEXICAL else f"openai/{name}" for name in members),
            replace_client=lambda _: replayed.model,
            parameters=RunParameters.of_result(recorded) or RunParameters(),
            folder=_recorded_folder(recorded, replayed),
        )

    def _replay_runtime(self, indexed: IndexedResult, recorded: Mapping[str, Any]) -> _ReplayRuntime:
        missing = MissingRequests(timeout_s=self._timeout_s)
        index = MemoryIndex()
        for page_id in indexed.pages:
            capture = self._capture(page_id)
            if capture is not None:
                index.record_sync(capture)
        limits = Limits.from_settings(self._settings)
        secret = hashlib.sha256(str(recorded.get("id")).encode("utf-8", "replace")).digest()
        block_builder = BlockBuilder(secret)
        runtime = Runtime(
            settings=self._settings,
            limits=limits,
            catalogue=self._catalogues[f"{indexed.task_id}/{indexed.script}"],
            pages=PageCache(OfflineBrowser(missing), self._blobs, index, failure_ttl_s=_NEVER_EXPIRES_S),
            blobs=self._blobs,
            index=index,
            models=ModelClients(self._settings, limits, None, lists_models=False),
            block_builder=block_builder,
            page_preparer=PagePreparer(block_builder),
            redactor=Redactor(()),
            process_pool=self._process_pool,
        )
        return _ReplayRuntime(
            runtime=runtime,
            model=ReplayLLM(group_by_key(self._calls(indexed)), missing),
            missing=missing,
            find=index.find_sync,
        )

    def _calls(self, indexed: IndexedResult) -> Iterator[tuple[str, RecordedCall]]:
        path = f"data/{calls_path(indexed.result_id)}"
        for line in self._bundle.read(path, max_bytes=MAX_CALLS_BYTES).splitlines():
            try:
                call = json.loads(line)
                if call.get("called_off"):
                    continue  # cancelled without a reply; a repeated request has a line of its own
                yield recorded_request_key(call, self._text), RecordedCall.model_validate(call)
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
                raise BundleRefused(f"{path} contains a line that is not a call record: {error}") from error

    def _text(self, sha256: str) -> str:
        if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
            raise BundleRefused("a call refers to a text by an invalid hash")
        return self._bundle.read(f"data/{text_path(sha256)}").decode("utf-8", "replace")

    def _capture(self, page_id: str) -> Capture | None:
        return None if capture_path(page_id) in self._absent else read_capture(self._bundle, page_id)


def _owner_of_pages(recorded: Mapping[str, Any]) -> str | None:
    """Return the owner whose own captures a result used; None if all of its captures are shared."""
    pages = recorded.get("pages")
    owners = [page.get("owner") for page in pages if isinstance(page, dict)] if isinstance(pages, list) else []
    return next((owner for owner in owners if isinstance(owner, str)), None)

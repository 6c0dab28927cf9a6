"""Forecasts of calls, tokens and cost: run the pipeline with simulated model replies.

Uses the stored pages and ``judges.analysis.forecasts``. No model is called, no page is opened and nothing is written to
disk.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

from obstore.store import MemoryStore

from answers.submission import Answer
from app.engine import pipeline
from app.engine.evaluation import PlannedAnswer
from app.engine.limits import Limits
from app.engine.model_clients import ModelClients, folder_reply_cache
from app.engine.public_cache import PublicCache
from app.engine.result_folder import newest_result
from app.engine.runtime import Runtime, create_fork_server_pool, open_blobs
from app.observability.redaction import Redactor
from app.settings import Settings
from cache.blobs import BlobStore
from cache.capture import Capture, CaptureOutcome, Observation
from cache.capture_index import CaptureIndex, FolderIndex, MemoryIndex
from cache.errors import BlobMissing
from cache.pages import PageCache
from cache.urls import canonical_key
from judges.analysis.forecasts.forecast import EstimatedUsage, Forecast, UsageByRole, forecast_from_runs, scale_to_calls
from judges.analysis.forecasts.past_results import PastResults, past_results_of
from judges.analysis.forecasts.simulation import (
    BOUNDS,
    LIKELY,
    CachedReply,
    KeyOf,
    LexicalReplies,
    RunAssumptions,
    SimulatedLLM,
)
from judges.cpu_bound import cited_urls
from judges.errors import JudgeBug, JudgeError, ModelNotConfigured
from judges.llm.cached import CachedLLM, parse_stored
from judges.llm.client import CheckpointedReply, LLMClient, LLMReply, LLMRequest, UnconfiguredLLM
from judges.llm.encoding import request_key
from judges.llm.jury_client import JuryClient
from judges.llm.lexical import MODEL as LEXICAL
from judges.llm.providers import parse_judge
from judges.llm.remote import sent_params
from judges.loader import JudgeCatalogue
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.registry import Judge
from judges.result_files import judged_answers

UNKNOWN_PAGE: Final = "This page was not looked at yet. " * 200
"""Placeholder text for a page that was not captured yet. Its length is typical."""
_PLACEHOLDER_SCREENSHOT: Final = b"\xff\xd8 not a picture"
_UNSEEN: Final = "unseen"
_NEVER_EXPIRES_S: Final = 1e12
_MAX_CONCURRENT: Final = 4
_MAX_PAST_RESULTS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastRequest:
    """Input of a forecast: one answer.

    ``owner`` is the owner of the answer. ``past`` are results of its task, oldest first.
    ``stored_reply`` returns the checkpoint of a job for a request key, if any. ``stored_pages``: no page is captured,
    so claims whose pages are not stored cost nothing.
    """

    judge: Judge
    agent: str
    answer: Answer
    model: str
    owner: str | None = None
    past: Sequence[Mapping[str, Any]] = ()
    stored_reply: Callable[[str, LLMRequest], LLMReply | None] = field(default=lambda key, request: None)
    stored_pages: bool = False


async def forecast(runtime_copy: Runtime, forecast_request: ForecastRequest) -> Forecast:
    """Forecast the judging of one answer. ``runtime_copy`` is a runtime from ``forecast_runtime``."""
    judged_by = parse_judge(forecast_request.model)
    name = judged_by.model
    past = past_results_of(
        forecast_request.past,
        script_sha256=forecast_request.judge.sha256,
        model=name,
        answer_sha256=forecast_request.answer.sha256,
    )
    memo, problems = LexicalReplies(), list[str]()

    async def run(assumptions: RunAssumptions) -> UsageByRole:
        tally = UsageByRole()

        def simulated(client: LLMClient) -> LLMClient:
            cached_reply, key_of = reply_lookup(client, forecast_request.stored_reply)
            return SimulatedLLM(
                past=past,
                assumptions=assumptions,
                memo=memo,
                tally=tally,
                kept=cached_reply,
                key_of=key_of,
                unknown_page=UNKNOWN_PAGE,
                prices=runtime_copy.settings.prices,
            )

        try:
            await pipeline.evaluate(
                runtime_copy,
                judge=forecast_request.judge,
                agent=forecast_request.agent,
                answer=forecast_request.answer,
                model=forecast_request.model,
                owner=forecast_request.owner,
                replace_client=simulated,
                stored_pages=forecast_request.stored_pages,
            )
        except (JudgeBug, JudgeError) as error:
            problems.append(str(error).partition("\n")[0])
        return tally

    variants = LIKELY[:1] if name == LEXICAL else (*LIKELY, *BOUNDS)
    first = await run(variants[0])
    if problems:  # the judge may have failed because the simulated values were not as it expects: try others
        problems.clear()
        variants = tuple(replace(assumptions, outline=True) for assumptions in variants)
        first = await run(variants[0])
    tallies = [first, *[await run(assumptions) for assumptions in variants[1:]]]
    estimate = forecast_from_runs(tallies[: len(LIKELY)], tallies[len(LIKELY) :])
    cited = await cited_urls(forecast_request.answer.text)
    unknown = [url for url in cited if await _is_unknown(runtime_copy, url)]
    problem = problems[0] if problems else None
    estimate = replace(estimate, past_runs=past.runs, unknown_pages=len(unknown), problem=problem)
    return _by_past_runs(estimate, past)


async def _is_unknown(runtime_copy: Runtime, url: str) -> bool:
    known = await runtime_copy.index.find(canonical_key(url))
    return known is None or known.backend == _UNSEEN


def _by_past_runs(forecast: Forecast, past: PastResults) -> Forecast:
    """Scale the forecast to the past runs if it is far from all of them.

    It is far if it has more than twice the calls of the largest past run or less than half of the smallest. Runs on the
    same answer take precedence, and their smallest number of calls is a lower limit: simulated values lead a script to
    other claims than the real ones, so a sequence may end too early. They are a weak upper limit, because cancelled
    requests are not among their calls.
    """
    forecast_calls = forecast.expected.calls + forecast.expected.cached_calls
    calls = past.calls_for_answer or past.calls
    least = min(calls, default=0) / (1 if past.calls_for_answer else 2)
    if not calls or least <= forecast_calls <= 2 * max(calls):
        return forecast
    mean_calls = sum(calls) / len(calls)
    if not forecast.expected.calls:
        return (
            forecast
            if forecast.expected.cached_calls
            else replace(forecast, high=forecast.high + EstimatedUsage(calls=mean_calls))
        )
    return scale_to_calls(forecast, forecast.expected.calls * mean_calls / forecast_calls)


StoredReply: TypeAlias = Callable[[str, LLMRequest], LLMReply | None]
"""Returns the checkpoint of a job for a request key, if any."""


def reply_lookup(client: LLMClient, stored_reply: StoredReply = lambda key, request: None) -> tuple[CachedReply, KeyOf]:
    """Return the lookup function for cached replies, and the function that computes the key of a request."""
    if isinstance(client, JuryClient):
        return _jury_lookup(client, stored_reply)
    if not isinstance(client, CachedLLM):

        async def no_reply(request: LLMRequest) -> LLMReply | None:
            return None

        return no_reply, _key_without_client

    async def cached_reply(request: LLMRequest) -> LLMReply | None:
        key = await asyncio.to_thread(client.key_of, request)
        return stored_reply(key, request) or await client.cached_reply(request)

    return cached_reply, client.key_of


def _jury_lookup(client: JuryClient, stored_reply: StoredReply) -> tuple[CachedReply, KeyOf]:
    async def cached_reply(request: LLMRequest) -> LLMReply | None:
        return await reply_lookup(client.of(request.model), stored_reply)[0](request)

    return cached_reply, lambda request: reply_lookup(client.of(request.model), stored_reply)[1](request)


def _key_without_client(request: LLMRequest) -> str:
    return request_key(request, provider="", endpoint="", params=sent_params(request))


def checkpoint_lookup(replies: Mapping[str, CheckpointedReply]) -> Callable[[str, LLMRequest], LLMReply | None]:
    """Return a ``ForecastRequest.stored_reply`` function for the checkpoints of a job."""

    def recall(key: str, request: LLMRequest) -> LLMReply | None:
        reply = replies.get(key)
        return None if reply is None else parse_stored(request, replace(reply, shorter_page=None))

    return recall


async def forecast_all(runtime_copy: Runtime, requests: Iterable[ForecastRequest]) -> list[Forecast]:
    """Compute forecasts concurrently and return them in the order of the requests."""
    slots = asyncio.Semaphore(_MAX_CONCURRENT)

    async def one(forecast_request: ForecastRequest) -> Forecast:
        async with slots:
            return await forecast(runtime_copy, forecast_request)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(forecast_request)) for forecast_request in requests]
    return [task.result() for task in tasks]


async def forecast_plan(
    settings: Settings,
    catalogue: JudgeCatalogue,
    planned: Sequence[PlannedAnswer],
    *,
    out: Path,
    public: PublicCache | None,
) -> list[Forecast | None]:
    """Return one forecast per planned answer, None for answers that need no judging. Writes nothing."""
    by_number: dict[int, Forecast] = {}
    by_task: dict[tuple[str, str], list[int]] = {}
    for number, one in enumerate(planned):
        if one.to_judge:
            by_task.setdefault((one.folder.agent, one.folder.task_id), []).append(number)
    if not by_task:
        return [None] * len(planned)
    async with open_forecast_runtime(settings, catalogue) as base_runtime:
        for (agent, task_id), numbers in by_task.items():
            runtime_copy = forecast_runtime(
                base_runtime
            )  # one per task, so that the pages of earlier tasks leave the memory
            if public is not None:
                await public.import_pages(
                    runtime_copy, agent, task_id, [url for number in numbers for url in planned[number].urls]
                )
            past = await asyncio.to_thread(past_results, out, task_id)
            requests = [
                await asyncio.to_thread(_plan_request, planned[number], settings.model, past) for number in numbers
            ]
            by_number |= zip(numbers, await forecast_all(runtime_copy, requests), strict=True)
    return [by_number.get(number) for number in range(len(planned))]


def past_results(out: Path, task_id: str) -> list[dict[str, Any]]:
    """Return the newest results of a task for all agents. Unreadable results are skipped. Blocks on disk reads."""
    agents = sorted(path.name for path in out.iterdir() if path.is_dir()) if out.is_dir() else []
    folders = [folder for agent in agents for folder in judged_answers(out, agent, task_id)]
    read = [newest_result(folder, damaged_ok=True) for folder in folders[-_MAX_PAST_RESULTS:]]
    return [result for result in read if result is not None]


def _plan_request(planned: PlannedAnswer, model: str, past: Sequence[Mapping[str, Any]]) -> ForecastRequest:
    """Return the request for one answer. Reads its newest result, if there is one. Blocks on disk reads."""
    if planned.judge is None:
        raise ValueError(f"{planned.answer.name} has no judge")
    # The newest result of this answer comes last, because later results take precedence.
    newest = newest_result(planned.folder, damaged_ok=True)
    earlier: list[Mapping[str, Any]] = [] if newest is None else [newest]
    return ForecastRequest(
        judge=planned.judge,
        agent=planned.folder.agent,
        answer=planned.answer,
        model=model,
        past=[one for one in past if one not in earlier] + earlier,
    )


@asynccontextmanager
async def open_forecast_runtime(settings: Settings, catalogue: JudgeCatalogue) -> AsyncIterator[Runtime]:
    """Open a runtime for forecasts without a service. Reads the data folder if it exists, but never creates it."""
    data = settings.data_dir
    index: CaptureIndex = MemoryIndex()
    if await asyncio.to_thread((data / "captures").is_dir):
        index = await FolderIndex.open(data / "captures")
    has_blobs = bool(settings.blobs) or await asyncio.to_thread((data / "blobs").is_dir)
    blobs = await asyncio.to_thread(open_blobs, settings) if has_blobs else BlobStore.open("memory://")
    path = data / "secret"
    secret = await asyncio.to_thread(lambda: path.read_bytes() if path.is_file() else secrets.token_bytes(32))
    limits = Limits.from_settings(settings)
    models = ModelClients(settings, limits, folder_reply_cache(settings))
    block_builder, process_pool = BlockBuilder(secret), create_fork_server_pool(settings)
    redactor = Redactor(settings.secrets)
    pages = PageCache(_PlaceholderCapturer(), blobs, index)
    try:
        yield forecast_runtime(
            Runtime(
                settings=settings,
                limits=limits,
                catalogue=catalogue,
                pages=pages,
                blobs=blobs,
                index=index,
                models=models,
                block_builder=block_builder,
                page_preparer=PagePreparer(block_builder),
                redactor=redactor,
                process_pool=process_pool,
            )
        )
    finally:
        await pages.aclose()
        await models.aclose()
        if process_pool is not None:
            await process_pool.aclose()


def forecast_runtime(runtime: Runtime) -> Runtime:
    """Return a read-only copy of ``runtime`` for forecasts.

    It reads the stored pages and replies, but writes only to memory and opens no pages. Models without a key are
    allowed.
    """
    blobs = _OverlayBlobs(runtime.blobs)
    index = _OverlayIndex(runtime.index)
    return replace(
        runtime,
        pages=PageCache(_PlaceholderCapturer(), blobs, index, clock=runtime.clock.now, failure_ttl_s=_NEVER_EXPIRES_S),
        blobs=blobs,
        index=index,
        models=_OfflineModels(runtime.models, runtime.settings, runtime.limits),
    )


class _PlaceholderCapturer:
    """``Capturer`` that returns a placeholder for every page."""

    async def capture(self, url: str) -> Observation:
        return Observation(
            url=url,
            outcome=CaptureOutcome.OK,
            captured_at=datetime.now(UTC),
            duration_s=0.0,
            backend=_UNSEEN,
            final_url=url,
            http_status=200,
            text=UNKNOWN_PAGE,
            screenshots=(_PLACEHOLDER_SCREENSHOT,),
        )

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""


class _OverlayBlobs(BlobStore):
    """Blob store that writes to memory, and reads from memory first, then from ``base``."""

    def __init__(self, base: BlobStore) -> None:
        super().__init__(MemoryStore())
        self._base = base

    async def get(self, sha256: str) -> bytes:
        try:
            return await super().get(sha256)
        except BlobMissing:
            return await self._base.get(sha256)


class _OverlayIndex(MemoryIndex):
    """Capture index that writes to memory, and reads from memory first, then from ``base``."""

    def __init__(self, base: CaptureIndex) -> None:
        super().__init__()
        self._base = base

    async def find(self, key: str, owner: str | None = None) -> Capture | None:
        return await super().find(key, owner) or await self._base.find(key, owner)

    async def newest(self, key: str, owner: str | None = None) -> Capture | None:
        return await super().newest(key, owner) or await self._base.newest(key, owner)

    async def get(self, capture_id: str) -> Capture | None:
        return await super().get(capture_id) or await self._base.get(capture_id)


class _OfflineModels(ModelClients):
    """Model clients for cache lookups. A model without a key can be priced, too."""

    def __init__(self, base: ModelClients, settings: Settings, limits: Limits) -> None:
        super().__init__(settings, limits, None)
        self._base = base

    def client(self, model: str) -> tuple[LLMClient, str]:
        try:
            return self._base.client(model)
        except ModelNotConfigured:
            judge = parse_judge(model)
            if judge.is_jury:
                return super().client(model)
            return UnconfiguredLLM(), judge.model

    def check(self, model: str | None) -> None:
        """Do nothing: a forecast is possible even if the key was rejected."""

    async def warnings(self, model: str | None, *, wait: bool = True) -> list[str]:
        """Return nothing: a forecast sends no requests to servers."""
        return []

"""What judging answers would take, told without asking a model, opening a page or writing a byte.

Runs the pipeline with simulated replies (``judges.analysis.forecasts``), over pages as they are
stored now. What that brings about stays in memory.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from obstore.store import MemoryStore

from answers.citations import unique_urls
from answers.submission import Answer
from app.engine import pipeline
from app.engine.limits import Limits
from app.engine.model_clients import ModelClients, reply_store
from app.engine.runtime import Runtime, nursery_of, open_blobs
from app.observability.redaction import Redactor
from app.settings import Settings
from cache.blobs import BlobStore
from cache.capture import Capture, CaptureOutcome, Observation
from cache.errors import BlobMissing
from cache.pages import PageCache
from cache.store import CaptureIndex, FolderIndex, MemoryIndex
from cache.urls import canonical_key
from judges.analysis.forecasts.figures import Forecast, Load, Tally, foreseen, scaled_to
from judges.analysis.forecasts.guessing import BOUNDS, LIKELY, GuessingLLM, Kept, KeyOf, Memo, Mood
from judges.analysis.forecasts.habits import Habits, habits_of
from judges.errors import JudgeBug, JudgeError, ModelNotConfigured
from judges.llm.cached import CachedLLM, read_for
from judges.llm.checkpointed import KeptReply
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.encoding import request_key
from judges.llm.lexical import MODEL as LEXICAL
from judges.llm.providers import parse_model
from judges.llm.remote import sent_params
from judges.loader import JudgeCatalogue
from judges.prompting.blocks import Separator
from judges.prompting.page_view import PagePreparer
from judges.registry import Judge

UNKNOWN_PAGE: Final = "This page was not looked at yet. " * 200
"""What stands for a page nobody has captured: as long as many are."""
_A_PICTURE: Final = b"\xff\xd8 not a picture"
_UNSEEN: Final = "unseen"
_FOR_EVER_S: Final = 1e12
_AT_ONCE: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One answer whose judging is to be forecast. ``past`` are results of its task, the oldest first; ``recall`` gives
    what a job was told already, by the request's key.
    """

    judge: Judge
    agent: str
    answer: Answer
    model: str
    past: Sequence[Mapping[str, Any]] = ()
    recall: Callable[[str, LLMRequest], LLMReply | None] = field(default=lambda key, request: None)


async def forecast(apart: Runtime, question: Question) -> Forecast:
    """What judging one answer would take now. ``apart`` is a runtime of ``standing_apart``."""
    name = parse_model(question.model).model
    habits = habits_of(
        question.past, script_sha256=question.judge.sha256, model=name, answer_sha256=question.answer.sha256
    )
    memo, problems = Memo(), list[str]()

    async def run(mood: Mood) -> Tally:
        tally = Tally()

        def guessing(client: LLMClient) -> LLMClient:
            kept, key_of = _kept(client, question)
            return GuessingLLM(
                habits=habits,
                mood=mood,
                memo=memo,
                tally=tally,
                kept=kept,
                key_of=key_of,
                unknown_page=UNKNOWN_PAGE,
                prices=apart.settings.prices,
            )

        try:
            await pipeline.evaluate(
                apart,
                judge=question.judge,
                agent=question.agent,
                answer=question.answer,
                model=question.model,
                around=guessing,
            )
        except (JudgeBug, JudgeError) as error:
            problems.append(str(error).partition("\n")[0])
        return tally

    moods = LIKELY[:1] if name == LEXICAL else (*LIKELY, *BOUNDS)
    first = await run(moods[0])
    if problems:  # the file may expect of its values what the first guess at them did not keep
        problems.clear()
        moods = tuple(replace(mood, outline=True) for mood in moods)
        first = await run(moods[0])
    tallies = [first, *[await run(mood) for mood in moods[1:]]]
    found = foreseen(tallies[: len(LIKELY)], tallies[len(LIKELY) :])
    unknown = [url for url in unique_urls(question.answer.text) if await _is_unknown(apart, url)]
    problem = problems[0] if problems else None
    found = replace(found, past_runs=habits.runs, unknown_pages=len(unknown), problem=problem)
    return _by_past_runs(found, habits)


async def _is_unknown(apart: Runtime, url: str) -> bool:
    known = await apart.index.find(canonical_key(url))
    return known is None or known.backend == _UNSEEN


def _by_past_runs(found: Forecast, habits: Habits) -> Forecast:
    """Past runs know better where the guesses lead nowhere near any of them; those on this very answer also where
    less is guessed than they took.

    What a script makes of values that were guessed a little otherwise are other claims, of which nothing is known: a
    chain of them then seems to end where it went on. That a run on this answer took less than is guessed says little:
    requests that were called off are not among its calls.
    """
    asked = found.expected.calls + found.expected.cached_calls
    calls = habits.calls_of_this or habits.calls
    least = min(calls, default=0) / (1 if habits.calls_of_this else 2)
    if not calls or least <= asked <= 2 * max(calls):
        return found
    usual = sum(calls) / len(calls)
    if not found.expected.calls:
        return found if found.expected.cached_calls else replace(found, high=found.high + Load(calls=usual))
    return scaled_to(found, found.expected.calls * usual / asked)


def _kept(client: LLMClient, question: Question) -> tuple[Kept, KeyOf]:
    """Where a request's reply is looked up, and how its key is known."""
    if not isinstance(client, CachedLLM):

        async def nothing(request: LLMRequest) -> LLMReply | None:
            return None

        return nothing, _key_without_client

    async def kept(request: LLMRequest) -> LLMReply | None:
        key = await asyncio.to_thread(client.key_of, request)
        return question.recall(key, request) or await client.kept(request)

    return kept, client.key_of


def _key_without_client(request: LLMRequest) -> str:
    return request_key(request, provider="", endpoint="", params=sent_params(request))


def kept_for(replies: Mapping[str, KeptReply]) -> Callable[[str, LLMRequest], LLMReply | None]:
    """A ``recall`` over what a job was told."""

    def recall(key: str, request: LLMRequest) -> LLMReply | None:
        found = replies.get(key)
        return None if found is None else read_for(request, replace(found, shorter_page=None))

    return recall


async def forecast_all(apart: Runtime, questions: Iterable[Question]) -> list[Forecast]:
    """Forecasts side by side, in the order of the questions."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(question: Question) -> Forecast:
        async with slots:
            return await forecast(apart, question)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(question)) for question in questions]
    return [task.result() for task in tasks]


@asynccontextmanager
async def opened_apart(settings: Settings, catalogue: JudgeCatalogue) -> AsyncIterator[Runtime]:
    """What forecasts need, without a service: reads the data folder where there is one, and makes none."""
    data = settings.data_dir
    index: CaptureIndex = MemoryIndex()
    if await asyncio.to_thread((data / "captures").is_dir):
        index = await FolderIndex.open(data / "captures")
    has_blobs = bool(settings.blobs) or await asyncio.to_thread((data / "blobs").is_dir)
    blobs = await asyncio.to_thread(open_blobs, settings) if has_blobs else BlobStore.open("memory://")
    place = data / "secret"
    secret = await asyncio.to_thread(lambda: place.read_bytes() if place.is_file() else secrets.token_bytes(32))
    limits = Limits.from_settings(settings)
    models = ModelClients(settings, limits, reply_store(settings))
    separator, nursery = Separator(secret), nursery_of(settings)
    redactor = Redactor(settings.secrets)
    pages = PageCache(_Unseen(), blobs, index)
    try:
        yield standing_apart(
            Runtime(
                settings=settings,
                limits=limits,
                catalogue=catalogue,
                pages=pages,
                blobs=blobs,
                index=index,
                models=models,
                separator=separator,
                prepared=PagePreparer(separator),
                redactor=redactor,
                nursery=nursery,
            )
        )
    finally:
        await pages.aclose()
        await models.aclose()
        if nursery is not None:
            await nursery.aclose()


def standing_apart(runtime: Runtime) -> Runtime:
    """A runtime that knows what ``runtime`` knows and keeps what it learns to itself: no page is opened, no body or
    record written, and models without a key are no hindrance.
    """
    blobs = _BlobsApart(runtime.blobs)
    index = _IndexApart(runtime.index)
    settings = runtime.settings.model_copy(update={"look_ahead": False})
    return replace(
        runtime,
        settings=settings,
        pages=PageCache(_Unseen(), blobs, index, clock=runtime.clock.now, failure_ttl_s=_FOR_EVER_S),
        blobs=blobs,
        index=index,
        models=_ModelsApart(runtime.models, settings, runtime.limits),
    )


class _Unseen:
    """The capturer of a world in which nobody has looked yet: every page is one of the usual kind."""

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
            screenshots=(_A_PICTURE,),
        )

    async def aclose(self) -> None:
        """Nothing was opened."""


class _BlobsApart(BlobStore):
    """Writes to memory, and reads from there before it reads from ``behind``."""

    def __init__(self, behind: BlobStore) -> None:
        super().__init__(MemoryStore())
        self._behind = behind

    async def get(self, sha256: str) -> bytes:
        try:
            return await super().get(sha256)
        except BlobMissing:
            return await self._behind.get(sha256)


class _IndexApart:
    """The same for records."""

    def __init__(self, behind: CaptureIndex) -> None:
        self._behind = behind
        self._own = MemoryIndex()

    async def find(self, key: str) -> Capture | None:
        return await self._own.find(key) or await self._behind.find(key)

    async def newest(self, key: str) -> Capture | None:
        return await self._own.newest(key) or await self._behind.newest(key)

    async def get(self, capture_id: str) -> Capture | None:
        return await self._own.get(capture_id) or await self._behind.get(capture_id)

    async def record(self, capture: Capture) -> None:
        await self._own.record(capture)


class _ModelsApart(ModelClients):
    """Clients to look up kept replies with. A model that nobody can ask can be priced all the same."""

    def __init__(self, behind: ModelClients, settings: Settings, limits: Limits) -> None:
        super().__init__(settings, limits, None)
        self._behind = behind

    def client(self, model: str) -> tuple[LLMClient, str]:
        try:
            return self._behind.client(model)
        except ModelNotConfigured:
            return _Nobody(), parse_model(model).model

    def check(self, model: str | None) -> None:
        """A refused key refuses no forecast."""

    async def warnings(self, model: str | None, *, wait: bool = True) -> list[str]:
        """No server is asked for a forecast."""
        return []


class _Nobody:
    """Stands where no client can be made. It is not asked: a guess stands before it."""

    async def complete(self, request: LLMRequest) -> LLMReply:
        raise ModelNotConfigured(f"{request.model} cannot be asked")

    async def aclose(self) -> None:
        """Nothing was opened."""

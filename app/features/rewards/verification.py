"""Verification of answers: the pipeline of submissions, without a job, within a deadline.

Equal requests that run at the same time share one verification, and later ones get its stored response. Different
answers share captures and model replies through the caches of the pipeline.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import structlog

from answers.submission import Answer
from app.async_tools import Batches
from app.engine.pipeline import AnswerPages, JudgingCase, evaluate
from app.features.rewards.reward import Mask, MaskReason, PageShare, Reward, ScoreKind, components, reward_of, scores
from app.features.rewards.rubrics import RubricCompiler
from app.jobs.budget_ledger import RequestAccounting
from app.observability.metrics import RequestMetrics
from app.service import Service
from app.storage.direct_pool import DirectConnection
from app.storage.errors import DatabaseUnavailable
from app.storage.idempotency import IdempotencyKey, keep_responses, kept_responses, remove_kept_responses
from cache.errors import BrowserUnavailable
from cache.single_flight import LRUCache, SingleFlight
from judges.cpu_bound import cited_urls, run_on_leaves
from judges.errors import JudgeError, LLMError, LLMRejected, ModelNotConfigured, ReplyNotCached
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.observed import ObservedLLM, RequestObserver
from judges.llm.pricing import Estimate, ProcessBudget
from judges.registry import Judge
from judges.result import score_json
from judges.source_code import YAML_SUFFIX
from judges.verifier import ClaimQuestion, EvidenceLookup, PageOnlyVerifier, ShownClaim, Verifier
from rubrics.scoring import Score
from rubrics.tree_json import leaves_of
from rubrics.verdict import Outcome, Reason, Usage, Verdict

AGENT = "verify"
"""Agent of the verified answers, for the sums of usage."""
_ANSWER = "answer_1.md"
_LATE_SHARE = 0.9
_CLEANUP_S = 600.0
_MAX_AT_ONCE = 512
"""Concurrent verifications of this process. Further ones wait; the wait counts towards their deadline."""
KEEP_S = 3600.0
"""Time for which the response to a verification is kept for equal requests."""
_VERDICT_BYTES = 64 * 1024 * 1024
_VERDICT_OVERHEAD_BYTES = 4096
"""Approximate size of a verdict without its texts."""
_LOOKUP_AGE_S = 10.0
"""Time for which the stored capture of a page is not looked up again."""
_NO_USAGE: dict[str, Any] = {"calls": 0, "cached_calls": 0, "input_tokens": 0, "output_tokens": 0, "usd": 0.0}
_UNKNOWN = Score(value=None, low=0.0, high=1.0)
_log = structlog.get_logger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Answer to verify. ``model`` is ``provider/model``.

    Attributes:
        max_unreadable_share: Maximum share of pages without usable content; above it, the reward is masked.
        alone: Claims on a page are judged without the answer, so that answers share verdicts.
        deadline_s: Time limit, including the wait for a slot.
    """

    judge: Judge
    text: str
    model: str
    owner: str
    score: ScoreKind
    max_unreadable_share: float
    alone: bool
    budget_usd: float | None
    deadline_s: float

    def fingerprint(self, parameters: str) -> str:
        """Return a digest of everything that determines the response, except pages and replies of the model."""
        judge = self.judge.sha256 or self.judge.description
        fields = [getattr(self, name) for name in self.__slots__ if name != "judge"]
        text = json.dumps([self.judge.task, judge, parameters, *fields], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Turns:
    """Lets one verification or claim continue in each iteration of the event loop.

    Many become ready at once, for example when the replies of a model arrive together. Without turns, the event loop
    would serve no other request until all of them wait again.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def wait(self) -> None:
        async with self._lock:
            await asyncio.sleep(0)


class SharedVerdicts:
    """Verdicts on equal claims about the same capture of a page, which the answers of one process share.

    The reply cache already shares the replies of the model, across processes and restarts. Sharing the verdict also
    saves loading the page, rendering the claim and searching for quotes: half of the processor time of a verification.
    """

    def __init__(self) -> None:
        self._verdicts: LRUCache[Hashable, tuple[float, Verdict]] = LRUCache(_VERDICT_BYTES)
        self.running: dict[Hashable, asyncio.Event] = {}
        """Claims that an answer is judging. The event is set when it has finished, with a verdict or without."""

    def get(self, key: Hashable) -> Verdict | None:
        known = self._verdicts.get(key)
        return None if known is None or time.monotonic() >= known[0] else known[1]

    def put(self, key: Hashable, verdict: Verdict) -> None:
        """Keep a verdict that every vote supports or that was decided by a majority of usable votes.

        A verdict with a lost vote is not kept: another answer may get all votes.
        """
        if verdict.outcome not in (Outcome.PASSED, Outcome.FAILED) or any(vote.fault for vote in verdict.votes):
            return
        cached = Usage(cached_calls=1)
        requests = tuple(replace(request, usage=cached) for request in verdict.requests)
        shared = replace(
            verdict,
            votes=tuple(replace(vote, cached=True) for vote in verdict.votes),
            requests=requests,
            usage=Usage(cached_calls=len(requests)),
        )
        size = _VERDICT_OVERHEAD_BYTES + 2 * (len(verdict.reasoning) + sum(len(quote.text) for quote in verdict.quotes))
        self._verdicts.put(key, (time.monotonic() + KEEP_S, shared), size)


class RewardVerifier:
    """Verifier of one process. Limits concurrency and shares equal verifications."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._keep_time = timedelta(seconds=KEEP_S)
        self.slots = asyncio.Semaphore(_MAX_AT_ONCE)
        # Each task file in Python runs in a process of its own, so fewer of them can run than files in YAML.
        self.processes = asyncio.Semaphore(service.settings.max_tasks * service.settings.max_answers)
        self._lookups: Batches[IdempotencyKey, str | None] = Batches(self._find)
        self._writes: Batches[tuple[IdempotencyKey, str], str | None] = Batches(self._keep)
        self._next_cleanup = 0.0
        self._flights: SingleFlight[str, bytes] = SingleFlight()
        self.rubrics, self.turns = RubricCompiler(), Turns()
        self.verdicts = SharedVerdicts()

    async def verify(self, verification: Verification) -> bytes:
        """Return the response as JSON. Equal verifications get equal bytes, unless the reward is masked.

        Raises:
            ModelNotConfigured: The service cannot use the model.
        """
        await self.turns.wait()
        fingerprint = verification.fingerprint(repr(self.service.settings.parameters))
        return await self._flights.run(fingerprint, lambda: self._verify(verification, fingerprint))

    async def _verify(self, verification: Verification, fingerprint: str) -> bytes:
        key = IdempotencyKey(owner=verification.owner, key=f" verify {fingerprint}", fingerprint=fingerprint)
        known = await self._lookups.run(key)
        if known is not None:
            self.service.metrics.verifications.labels("repeated", "").inc()
            return known.encode()
        encoded, is_masked = await _Run(self, verification).response()
        if is_masked:
            return encoded.encode()
        kept = await self._writes.run((key, encoded))
        await self._remove_expired()
        return (kept or encoded).encode()

    async def _find(self, keys: Sequence[IdempotencyKey]) -> list[str | None]:
        since = self.service.runtime.clock.now() - self._keep_time
        known = await self._stored(lambda connection: kept_responses(connection, keys, since=since)) or {}
        return [known.get(each.key) for each in keys]

    async def _keep(self, responses: Sequence[tuple[IdempotencyKey, str]]) -> list[str | None]:
        now = self.service.runtime.clock.now()
        since = now - self._keep_time
        kept = await self._stored(lambda each: keep_responses(each, dict(responses), now=now, since=since)) or {}
        return [kept.get(key.key) for key, _ in responses]

    async def _remove_expired(self) -> None:
        """Remove expired responses: the first time, and then every ``_CLEANUP_S``."""
        if time.monotonic() < self._next_cleanup:
            return
        self._next_cleanup = time.monotonic() + _CLEANUP_S
        before = self.service.runtime.clock.now() - self._keep_time
        await self._stored(lambda connection: remove_kept_responses(connection, before=before))

    async def _stored(self, access: Callable[[DirectConnection], Awaitable[T]]) -> T | None:
        """Return what the database returns, or None if it cannot be reached: equal requests then cost more."""
        try:
            async with self.service.database.pooled_connection() as connection:
                return await access(connection)
        except DatabaseUnavailable as error:
            _log.warning("stored rewards not available", detail=str(error))
            return None


def runs_in_process(judge: Judge) -> bool:
    """Return whether the judge is a task file, which contains no code."""
    return judge.path is None or judge.path.suffix == YAML_SUFFIX


class _Run:
    """One verification that no other one answers."""

    def __init__(self, verifier: RewardVerifier, verification: Verification) -> None:
        self._verifier = verifier
        self._service = verifier.service
        self.asked = verification
        self.pages = AnswerPages(self._service.runtime.pages, owner=verification.owner, lookup_age_s=_LOOKUP_AGE_S)
        self.verdicts = verifier.verdicts
        self.turns = verifier.turns
        self.requests = _Requests(self.turns)
        self._began = time.monotonic()
        self._queued_s = 0.0
        self._shared_calls = 0

    async def response(self) -> tuple[str, bool]:
        """Verify the answer. Return the response (JSON text), and whether the reward is masked."""
        limit = asyncio.timeout(self.asked.deadline_s)
        process = nullcontext() if runs_in_process(self.asked.judge) else self._verifier.processes
        result: dict[str, Any] | None = None
        mask: Mask | None = None
        try:
            async with limit, self._verifier.slots, process:
                await self.turns.wait()
                self._queued_s = time.monotonic() - self._began
                result = await self._evaluate()
        except TimeoutError:
            if not limit.expired():
                raise
            mask = Mask(reason=MaskReason.DEADLINE, detail=f"Not finished within {self.asked.deadline_s:g} s")
        except LLMRejected as error:
            mask = Mask(reason=MaskReason.MODEL_UNAVAILABLE, detail=self._redacted(error))
        except DatabaseUnavailable as error:
            _log.warning("database unavailable", detail=str(error))
            mask = Mask(reason=MaskReason.STORAGE_UNAVAILABLE, detail="The database is unavailable")
        except BrowserUnavailable as error:
            mask = Mask(reason=MaskReason.BROWSER_UNAVAILABLE, detail=self._redacted(error))
        except ModelNotConfigured:
            raise
        except JudgeError as error:
            mask = Mask(reason=MaskReason.JUDGE_FAILED, detail=self._redacted(error))
        total_s = time.monotonic() - self._began
        cited = await cited_urls(self.asked.text)

        def encoded() -> tuple[str, bool]:
            body = self._body(result, cited, mask, total_s)
            return json.dumps(body), body["mask"]

        return await run_on_leaves(encoded, 0 if result is None else sum(1 for _ in leaves_of(result)))

    async def _evaluate(self) -> dict[str, Any]:
        asked, service = self.asked, self._service
        accounting = _Budget(
            RequestAccounting(service.ledger, (asked.owner, AGENT, asked.judge.task), limits_usd={}),
            None if asked.budget_usd is None else ProcessBudget(asked.budget_usd, usd_option="budget_usd"),
            self.turns,
        )

        def prepare(request: LLMRequest) -> LLMRequest:
            self.requests.started(request)
            return replace(request, budget=accounting)

        case = JudgingCase(
            # Without its source, a task file is run in this process.
            judge=replace(asked.judge, source=None) if runs_in_process(asked.judge) else asked.judge,
            agent=AGENT,
            answer=Answer(name=_ANSWER, text=asked.text),
            model=asked.model,
            owner=asked.owner,
            deadline_s=max(0.1, asked.deadline_s - self._queued_s),
            is_stored=False,
        )
        observers = RequestMetrics(service.metrics), self.requests
        return await evaluate(
            service.runtime,
            case,
            wrap_client=lambda client: ObservedLLM(client, observers, prepare=prepare),
            verifier=partial(_SharingVerifier, run=self) if asked.alone else Verifier,
            pages=self.pages,
        )

    def count_shared(self, verdict: Verdict) -> None:
        """Count the requests behind a verdict of another answer as cached ones."""
        self._shared_calls += len(verdict.requests)
        self._service.metrics.llm_requests.labels(verdict.model, "cached").inc(len(verdict.requests))

    def _body(
        self, result: dict[str, Any] | None, cited: Sequence[str], mask: Mask | None, total_s: float
    ) -> dict[str, Any]:
        asked = self.asked
        pages = PageShare.of(result, cited)
        reward = Reward(value=None, mask=mask)
        if result is not None:
            reward = reward_of(
                result,
                kind=asked.score,
                pages=pages,
                max_unreadable_share=asked.max_unreadable_share,
                faults=self.requests.faults,
                is_late=total_s >= _LATE_SHARE * asked.deadline_s,
            )
        timing = {} if result is None else result["timing"]
        usage = _NO_USAGE if result is None else result["usage"]
        both = dict.fromkeys(ScoreKind, _UNKNOWN) if result is None else scores(result)
        seconds = {
            "total_s": round(total_s, 3),
            "queued_s": round(self._queued_s, 3),
            "capture_s": timing.get("capture_s", 0.0),
            "model_s": round(self.requests.seconds, 3),
        }
        self._count(reward, both, seconds)
        return {
            "reward": reward.value,
            "mask": reward.mask is not None,
            "mask_reason": reward.mask and reward.mask.reason,
            "mask_detail": reward.mask and self._service.runtime.redactor.redact(reward.mask.detail),
            "score": asked.score,
            "bounds": {"low": both[asked.score].low, "high": both[asked.score].high},
            "scores": {kind: score_json(score) for kind, score in both.items()},
            "components": [] if result is None else components(result),
            "pages": None if result is None else {"total": pages.total, "unreadable": pages.unreadable},
            "cost": {**usage, "cached_calls": usage["cached_calls"] + self._shared_calls},
            "timing": seconds,
            "task_id": asked.judge.task,
            "judge_sha256": asked.judge.sha256,
            "answer_sha256": Answer(name=_ANSWER, text=asked.text).sha256,
            "model": asked.model,
        }

    def _count(self, reward: Reward, both: Mapping[ScoreKind, Score], timing: Mapping[str, float]) -> None:
        metrics = self._service.metrics
        metrics.verification_seconds.observe(timing["total_s"])
        overhead = timing["total_s"] - timing["model_s"] - timing["capture_s"]
        metrics.verification_overhead_seconds.observe(max(0.0, overhead))
        if reward.mask is not None:
            metrics.verifications.labels("masked", reward.mask.reason.value).inc()
            return
        metrics.verifications.labels("rewarded", "").inc()
        for kind, score in both.items():
            if score.value is not None:
                metrics.rewards.labels(kind.value).observe(score.value)

    def _redacted(self, error: Exception) -> str:
        return self._service.runtime.redactor.redact(str(error)) or type(error).__name__


class _SharingVerifier(PageOnlyVerifier):
    """Claim judge of one answer that shares its verdicts on pages with the other answers of the process.

    Each claim waits for a turn before its prompt is rendered, and each answer before its result is built.
    """

    def __init__(self, *arguments: Any, run: _Run, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._run = run

    async def before_result(self) -> None:
        await self._run.turns.wait()

    async def _judge_question(self, question: ShownClaim) -> Verdict:
        await self._run.turns.wait()
        return await super()._judge_question(question)

    async def settle_on(self, url: str, question: ClaimQuestion, evidence_for: EvidenceLookup) -> Verdict:
        run = self._run
        capture = run.pages.used_capture(url)
        if capture is None or not capture.is_evidence:
            return await super().settle_on(url, question, evidence_for)
        claim = replace(question.claim, sources=None)
        key = (
            run.asked.model, self.model, capture.id, claim, question.task, question.trials, question.use_screenshot,
        )  # fmt: skip
        verdicts = run.verdicts
        if (running := verdicts.running.get(key)) is not None:
            if question.cache_only:
                raise ReplyNotCached
            with run.requests.elsewhere():
                await running.wait()
        known = verdicts.get(key)
        if known is not None:
            run.count_shared(known)
            return known
        if key in verdicts.running:  # the answer that was waited for got no verdict
            return await super().settle_on(url, question, evidence_for)
        finished = verdicts.running[key] = asyncio.Event()
        try:
            verdict = await super().settle_on(url, question, evidence_for)
        finally:
            finished.set()
            del verdicts.running[key]
        if run.pages.used_capture(url) is capture:  # it is captured again if its stored copy is damaged
            verdicts.put(key, verdict)
        return verdict


@dataclass(frozen=True, slots=True)
class _Budget:
    """Budgets of the installation and of one verification. Implements ``RequestBudget`` of ``judges.llm``."""

    installation: RequestAccounting
    own: ProcessBudget | None
    turns: Turns

    async def reserve(self, estimate: Estimate) -> None:
        await self.turns.wait()  # encoding a request takes 2 ms
        if self.own is not None:
            await self.own.reserve(estimate)
        await self.installation.reserve(estimate)

    def settle(self, estimate: Estimate, usage: Usage | None, model: str, role: str) -> None:
        if self.own is not None:
            self.own.settle(estimate, usage, model, role)
        self.installation.settle(estimate, usage, model, role)


class _Requests(RequestObserver):
    """Observer of the model requests: the seconds in which at least one was running, and the reasons of failures."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self.faults: list[Reason] = []
        self._running = 0
        self._since = 0.0
        self._seconds = 0.0

    @property
    def seconds(self) -> float:
        return self._seconds + (time.monotonic() - self._since if self._running else 0.0)

    def started(self, request: LLMRequest) -> None:
        if not request.cache_only:  # its observers are not called if the reply is not cached
            self._begin()

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Count the block as a request: it waits for one of another answer."""
        self._begin()
        try:
            yield
        finally:
            self._end()

    async def replied(self, request: LLMRequest, reply: LLMReply, seconds: float) -> None:
        self._ended(request)
        if not reply.cached:
            await self._turns.wait()

    async def failed(self, request: LLMRequest, error: LLMError) -> None:
        if error.reason is not None:
            self.faults.append(error.reason)
        self._ended(request)

    def cancelled(self, request: LLMRequest) -> None:
        self._ended(request)

    def _ended(self, request: LLMRequest) -> None:
        if not request.cache_only:
            self._end()

    def _begin(self) -> None:
        if not self._running:
            self._since = time.monotonic()
        self._running += 1

    def _end(self) -> None:
        self._running -= 1
        if not self._running:
            self._seconds += time.monotonic() - self._since

"""Evaluator that public task scripts use: builds the tree, extracts, verifies and summarizes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from cache.capture import Capture
from judges.llm.models import DEFAULT_MODEL
from judges.result import page_json
from mind2web2 import extracting
from mind2web2.breakdown import Breakdown, with_defaults
from mind2web2.browser_managers import stop_manager
from mind2web2.config import NO_INSTRUCTION
from mind2web2.decisions import gated_verdict
from mind2web2.eval_toolkit import Extractor, Verifier, create_evaluator
from mind2web2.evaluator_base import judge_of
from mind2web2.evidence import invalid_evidence, log_checks, skipped_evidence
from mind2web2.extracting import as_recorded
from mind2web2.hosted_objects import HostedClient
from mind2web2.llm_client.judge import AnswerScope, JudgeError, answer_scope, current_scope
from mind2web2.page_source import NOT_KNOWN
from mind2web2.results import UNKNOWN_AGENT, UNKNOWN_ANSWER, run_description
from mind2web2.tree_builder import TreeBuilder
from mind2web2.verification_tree import AggregationStrategy, VerificationNode, as_status
from mind2web2.verify_options import InvalidCall, prerequisites_of
from rubrics.gating import Prerequisite, first_blocker, prerequisites
from rubrics.tree import find_path
from rubrics.verdict import Outcome, Reason, Verdict

__all__ = [
    "AggregationStrategy",
    "Evaluator",
    "Extractor",
    "VerificationNode",
    "Verifier",
    "create_evaluator",
]

S = TypeVar("S", bound=BaseModel)

_UNKNOWN_MODEL = "unknown"


class Evaluator(TreeBuilder):
    """Evaluator of one answer. ``initialize`` creates the root, the extractor and the verifier."""

    def __init__(self) -> None:
        super().__init__()
        self.agent_name = UNKNOWN_AGENT
        self.answer_name = UNKNOWN_ANSWER
        self._extractor: Extractor | None = None
        self._verifier: Verifier | None = None
        self._scope: AnswerScope | None = None
        self._judge_model: str | None = _UNKNOWN_MODEL
        self._extract_model: str | None = _UNKNOWN_MODEL
        self._extractions: list[dict[str, Any]] = []
        self._ground_truths: list[dict[str, Any]] = []
        self._custom_infos: list[dict[str, Any]] = []

    def initialize(
        self,
        task_id: str,
        strategy: AggregationStrategy = AggregationStrategy.PARALLEL,
        agent_name: str | None = None,
        answer_name: str | None = None,
        **kwargs: Any,
    ) -> VerificationNode:
        """Create the root. ``kwargs`` are those of ``create_evaluator``.

        A second call replaces the root, extractor and verifier and keeps everything that was recorded.

        Raises:
            TypeError: a keyword argument is missing or unknown.
        """
        kwargs.setdefault("task_description", f"Evaluation for {task_id}")
        judge = judge_of(kwargs.get("client"))
        if judge is not None:
            kwargs |= dict.fromkeys(("verify_model", "extract_model"), judge.model)
        with answer_scope(current_scope(self._scope)) as self._scope:
            self._extractor, self._verifier = create_evaluator(**kwargs)
        self._decisions = self._extractor.session.decisions
        self.agent_name = agent_name or UNKNOWN_AGENT
        self.answer_name = answer_name or UNKNOWN_ANSWER
        default_model = kwargs.get("default_model", DEFAULT_MODEL)
        self._judge_model = kwargs.get("verify_model", default_model)
        self._extract_model = kwargs.get("extract_model", default_model)
        root = self.create_root(kwargs["task_description"], strategy)
        if isinstance(kwargs["client"], HostedClient):
            self._register(kwargs["client"])
        return root

    def _register(self, client: HostedClient) -> None:
        """Register this evaluator with the host."""
        if self not in client.evaluators:
            client.evaluators.append(self)
        self._decisions.on_decision = lambda: client.report_progress(*self.leaves_done_and_known())

    def release(self) -> None:
        """Stop reporting progress."""
        self._decisions.on_decision = None

    @property
    def extractor(self) -> Extractor:
        """The extractor. Raises ValueError before ``initialize``."""
        if self._extractor is None:
            raise ValueError("the evaluator is not initialized: call initialize first")
        return self._extractor

    @property
    def verifier(self) -> Verifier:
        """The verifier. Raises ValueError before ``initialize``."""
        if self._verifier is None:
            raise ValueError("the evaluator is not initialized: call initialize first")
        return self._verifier

    async def extract(
        self,
        prompt: str,
        template_class: type[S],
        extraction_name: str = "extraction",
        source: str | None = None,
        additional_instruction: str | None = None,
        **kwargs: Any,
    ) -> S:
        """Extract ``template_class`` from the answer, or from the page ``source``, and record the value.

        Raises:
            ValueError: before ``initialize``; ``source`` is a list.
            TypeError: ``use_screenshot`` without a source, or an unknown keyword.
            JudgeError: the answer can have no result.
        """
        extractor = self.extractor
        instruction = additional_instruction or NO_INSTRUCTION
        set_name = extracting.extraction_name.set(extraction_name)
        try:
            if source is None:
                extracted = await extractor.simple_extract(prompt, template_class, instruction, **kwargs)
            elif isinstance(source, str):
                extracted = await extractor.extract_from_url(
                    prompt, source, template_class, additional_instruction=instruction, **kwargs
                )
            else:
                raise ValueError(f"source must be a string or None, not {type(source).__name__}")
        finally:
            extracting.extraction_name.reset(set_name)
        self._extractions.append({extraction_name: as_recorded(extracted)})
        return extracted

    async def verify(
        self,
        claim: str,
        node: VerificationNode | None,
        sources: Any = None,
        *,
        extra_prerequisites: Sequence[VerificationNode] | None = None,
        additional_instruction: str | None = NO_INSTRUCTION,
        **kwargs: Any,
    ) -> bool:
        """Verify a claim and store the verdict in ``node``, unless a prerequisite of the node has failed.

        Raises:
            ValueError: before ``initialize``.
            TypeError: the claim is None.
            JudgeError: the answer can have no result.
        """
        verifier = self.verifier
        if claim is None:
            raise TypeError("the claim must not be None")
        if node is not None:
            try:
                extra = prerequisites_of(node, extra_prerequisites)
            except InvalidCall as error:
                return self._refuse(claim, node, sources, error)
            needed = self._prerequisites(node, extra)
            skipped = self._skip_if_blocked(claim, node, sources, needed)
            if skipped is not None:
                return skipped
        return await verifier.settle(claim, sources, node, additional_instruction, **kwargs)

    async def batch_verify(
        self, claims_and_sources: Iterable[tuple[str, Any, VerificationNode | None, str | None]], **kwargs: Any
    ) -> list[bool | BaseException]:
        """Verify many (claim, sources, node, additional_instruction) concurrently.

        Return results or exceptions in order.

        Raises:
            JudgeError: the answer can have no result. The other claims are cancelled.
        """
        claims = list(claims_and_sources)
        calls = [
            self.verify(claim, node, sources, additional_instruction=instruction, **kwargs)
            for claim, sources, node, instruction in claims
        ]
        tasks = [asyncio.create_task(call) for call in calls]
        pending = set(tasks)
        try:
            while pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_EXCEPTION)
                for task in done:
                    if not task.cancelled() and isinstance(task.exception(), JudgeError):
                        task.result()
        finally:
            for task in pending:
                task.cancel()
            if pending:
                await asyncio.wait(pending)
        # The public toolkit returns other exceptions in the list.
        return await asyncio.gather(*tasks, return_exceptions=True)

    def _prerequisites(
        self, node: VerificationNode, extra: Sequence[VerificationNode]
    ) -> list[Prerequisite[VerificationNode]]:
        return prerequisites(find_path(self.root, node) if self.root is not None else [], extra)

    def _skip_if_blocked(
        self, claim: str, node: VerificationNode, sources: Any, needed: Sequence[Prerequisite[VerificationNode]]
    ) -> bool | None:
        """Skip the node if a leaf it depends on has failed or was skipped. Return the result then, and else None."""
        blocker = first_blocker(needed, as_status, self._decisions.is_unknown)
        if blocker is None:
            return None
        unknown = self._decisions.is_unknown(blocker)
        node.evidence = skipped_evidence(claim, sources, blocker.id)
        verdict = gated_verdict(blocker)
        self._decisions.record(node, verdict, unknown=unknown)
        self.verifier.logger.debug("claim skipped, blocked by %s: %s", blocker.id, node.desc)
        log_checks(self.verifier.logger, node, node.evidence, node.status)
        return self._decisions.returned(verdict, unknown=unknown)

    def _refuse(self, claim: str, node: Any, sources: Any, error: InvalidCall) -> bool:
        self.verifier.logger.error("claim failed: %s", error)
        if isinstance(node, VerificationNode):
            node.evidence = invalid_evidence(claim, sources, error)
            verdict = Verdict(outcome=Outcome.FAILED, reason=Reason.CHECK_FALSE, reasoning=str(error))
            self._decisions.record(node, verdict)
            log_checks(self.verifier.logger, node, node.evidence, node.status)
        return False

    def add_ground_truth(self, info: dict[str, Any], gt_type: str = "ground_truth") -> None:
        """Record the expected answer."""
        self._ground_truths.append({gt_type: info})

    def add_custom_info(self, info: dict[str, Any], info_type: str = "custom", info_name: str | None = None) -> None:
        """Record custom information under ``info_name`` or, without one, ``info_type``."""
        self._custom_infos.append({info_name or info_type: info})

    @property
    def extraction_failed(self) -> bool:
        """Whether an extraction has failed. A cancelled one does not count: an error of the script also cancels."""
        return self._decisions.extraction_failed

    def interrupt(self, explanation: str) -> None:
        """End the run: leaves that are still open are not judged, for this reason. For the host."""
        self._decisions.stop_reason = explanation

    def score(self) -> float:
        """Return the compatible score. The first call fixes it."""
        return 0.0 if self.root is None else self.root.aggregated_score

    def get_summary(self) -> dict[str, Any]:
        """Return the result of this answer: the public keys and additional ones."""
        summary: dict[str, Any] = {
            "agent_name": self.agent_name,
            "answer_name": self.answer_name,
            "final_score": self.score(),
            "judge_model": self._judge_model,
            "extract_model": self._extract_model,
            "eval_breakdown": [],
        }
        run = run_description(None if self._extractor is None else self._extractor.client)
        if self._extractor is not None:
            run["judge_usage"] = self._extractor.session.scope.usage.as_dict()
        if self.root is None:
            return with_defaults(summary, current_scope().decisions) | run
        breakdown = Breakdown(self.root, self._decisions)
        infos = [*self._extractions, *self._ground_truths, *self._custom_infos]
        return summary | breakdown.public(infos) | breakdown.additional() | {"pages": self._pages()} | run

    def _pages(self) -> list[dict[str, Any]]:
        return [_page_json(capture) for capture in self.extractor.session.pages.used()]

    async def close(self) -> None:
        """Stop the browser manager, unless other evaluators share it."""
        if self._extractor is not None:
            await stop_manager(self._extractor.browser_manager)


def _page_json(capture: Capture) -> dict[str, Any]:
    """Return a page as in results; ``captured_at`` is null if the capture time is unknown."""
    page = page_json(capture)
    return page | {"captured_at": None} if capture.captured_at == NOT_KNOWN else page

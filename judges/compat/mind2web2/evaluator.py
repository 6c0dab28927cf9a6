"""The object a public judge script works with: it grows the tree, extracts, verifies and sums up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel

from cache.capture import Capture
from judges.llm.families import DEFAULT_MODEL
from judges.result import page_json
from mind2web2.asking import WrongCall, prerequisites_of
from mind2web2.breakdown import COMPLETE, Breakdown
from mind2web2.browser_sharing import stop_manager
from mind2web2.config import NO_INSTRUCTION
from mind2web2.eval_toolkit import Extractor, Verifier, create_evaluator
from mind2web2.extracting import as_recorded
from mind2web2.growing import GrowingTree
from mind2web2.hosting import HostedClient
from mind2web2.ledger import gated
from mind2web2.page_source import NOT_KNOWN
from mind2web2.verification_tree import AggregationStrategy, VerificationNode, as_status
from rubrics.gating import Prerequisite, first_blocker, prerequisites
from rubrics.node import Status
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

UNKNOWN_AGENT = "unknown_agent"
UNKNOWN_ANSWER = "unknown_answer"
_UNKNOWN_MODEL = "unknown"


class Evaluator(GrowingTree):
    """Takes nothing; ``initialize`` makes the root and what asks the model."""

    def __init__(self) -> None:
        super().__init__()
        self.agent_name = UNKNOWN_AGENT
        self.answer_name = UNKNOWN_ANSWER
        self._extractor: Extractor | None = None
        self._verifier: Verifier | None = None
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
        """Make the root; ``kwargs`` are those of ``create_evaluator``. Again: a new root, all else stays.

        Raises:
            TypeError: one of its keywords is missing or unknown.
        """
        kwargs.setdefault("task_description", f"Evaluation for {task_id}")
        self._extractor, self._verifier = create_evaluator(**kwargs)
        self._extractor.session.ledger = self._ledger
        self.agent_name = agent_name or UNKNOWN_AGENT
        self.answer_name = answer_name or UNKNOWN_ANSWER
        default_model = kwargs.get("default_model", DEFAULT_MODEL)
        self._judge_model = kwargs.get("verify_model", default_model)
        self._extract_model = kwargs.get("extract_model", default_model)
        root = self.plant(kwargs["task_description"], strategy)
        if isinstance(kwargs["client"], HostedClient):
            self._be_hosted(kwargs["client"])
        return root

    def _be_hosted(self, client: HostedClient) -> None:
        """Let the host see how far the script is."""
        if self not in client.evaluators:
            client.evaluators.append(self)
        progress = client.progress
        if progress is not None:
            self._ledger.on_decision = lambda: progress(*self.leaves_done_and_known())

    def let_go(self) -> None:
        """Report to nobody any more."""
        self._ledger.on_decision = None

    @property
    def extractor(self) -> Extractor:
        """Raises ValueError before ``initialize``."""
        if self._extractor is None:
            raise ValueError("the evaluator is not initialized: call initialize first")
        return self._extractor

    @property
    def verifier(self) -> Verifier:
        """Raises ValueError before ``initialize``."""
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
        """Fill ``template_class`` from the answer, or from the page ``source``, and record what came.

        Raises:
            ValueError: before ``initialize``; ``source`` is a list; a failed extraction into a class with required
                fields (pydantic's ValidationError).
            TypeError: ``use_screenshot`` without a source, or an unknown keyword.
        """
        extractor = self.extractor
        instruction = additional_instruction or NO_INSTRUCTION
        if source is None:
            found = await extractor.simple_extract(prompt, template_class, instruction, **kwargs)
        elif isinstance(source, str):
            found = await extractor.extract_from_url(
                prompt, source, template_class, additional_instruction=instruction, **kwargs
            )
        else:
            raise ValueError(f"an extraction has one source or none, not a {type(source).__name__}")
        self._extractions.append({extraction_name: as_recorded(found)})
        return found

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
        """Judge a claim and write the verdict into ``node``, unless something the node depends on has failed.

        Raises:
            ValueError: before ``initialize``.
            TypeError: the claim is None.
        """
        verifier = self.verifier
        if claim is None:
            raise TypeError("there is no claim: it is None")
        if node is not None:
            try:
                extra = prerequisites_of(node, extra_prerequisites)
            except WrongCall as mistake:
                return self._refuse(node, str(mistake))
            needed = self._prerequisites(node, extra)
            if verifier.session.scout is not None:
                early = partial(verifier.settle, claim, sources, node, additional_instruction, **kwargs)
                return await verifier.session.scout.start(node, needed, early)
            if self._is_blocked(node, needed):
                return False
        return await verifier.settle(claim, sources, node, additional_instruction, **kwargs)

    async def batch_verify(
        self, claims_and_sources: Iterable[tuple[str, Any, VerificationNode | None, str | None]], **kwargs: Any
    ) -> list[bool | BaseException]:
        """Many (claim, sources, node, additional_instruction) at once: results in order, exceptions in place."""
        asked = [
            self.verify(claim, node, sources, additional_instruction=instruction, **kwargs)
            for claim, sources, node, instruction in claims_and_sources
        ]
        # The public toolkit hands exceptions back in the list, and so must this.
        return await asyncio.gather(*asked, return_exceptions=True)

    def _prerequisites(
        self, node: VerificationNode, extra: Sequence[VerificationNode]
    ) -> list[Prerequisite[VerificationNode]]:
        return prerequisites(find_path(self.root, node) if self.root is not None else [], extra)

    def _is_blocked(self, node: VerificationNode, needed: Sequence[Prerequisite[VerificationNode]]) -> bool:
        """Skip the node if a leaf it depends on is failed or skipped at this moment."""
        blocker = first_blocker(needed, as_status)
        if blocker is None:
            return False
        known = first_blocker(needed, self._known_status)
        self._ledger.enter(node, gated(blocker), unknown=known is None)
        if self.verifier.session.scouted_by is not None:
            self.verifier.session.scouted_by.call_off(node.id)
        self.verifier.logger.info("claim skipped, blocked by %s: %s", blocker.id, node.desc)
        return True

    def _known_status(self, leaf: VerificationNode) -> Status:
        """A leaf that only counts as failed because nobody found out blocks nothing for certain."""
        return Status.INITIALIZED if self._ledger.is_unknown(leaf) else as_status(leaf)

    def _refuse(self, node: Any, mistake: str) -> bool:
        self.verifier.logger.error("claim failed: %s", mistake)
        if isinstance(node, VerificationNode):
            self._ledger.enter(node, Verdict(outcome=Outcome.FAILED, reason=Reason.CHECK_FALSE, reasoning=mistake))
        return False

    def add_ground_truth(self, info: dict[str, Any], gt_type: str = "ground_truth") -> None:
        """Record what the right answer is."""
        self._ground_truths.append({gt_type: info})

    def add_custom_info(self, info: dict[str, Any], info_type: str = "custom", info_name: str | None = None) -> None:
        """Record anything, under ``info_name`` or else ``info_type``."""
        self._custom_infos.append({info_name or info_type: info})

    @property
    def extraction_failed(self) -> bool:
        """Whether values were asked for that could not be read."""
        return self._ledger.unread is not None

    def cut_short(self, why: str) -> None:
        """For the host: the script was ended, so nothing more will be decided."""
        self._ledger.ended = why

    def score(self) -> float:
        """The compatible score; it stands still once asked for."""
        return 0.0 if self.root is None else self.root.aggregated_score

    def get_summary(self) -> dict[str, Any]:
        """The result of this answer: the public keys, and ours beside them."""
        summary: dict[str, Any] = {
            "agent_name": self.agent_name,
            "answer_name": self.answer_name,
            "final_score": self.score(),
            "judge_model": self._judge_model,
            "extract_model": self._extract_model,
            "eval_breakdown": [],
        }
        if self.root is None:
            return summary | {"status": COMPLETE, "score": {"value": 0.0, "low": 0.0, "high": 0.0}}
        breakdown = Breakdown(self.root, self._ledger)
        infos = [*self._extractions, *self._ground_truths, *self._custom_infos]
        return summary | breakdown.public(infos) | breakdown.ours() | {"pages": self._pages()}

    def _pages(self) -> list[dict[str, Any]]:
        return [_page_json(capture) for capture in self.extractor.session.pages.used()]

    async def close(self) -> None:
        """Stop the browser manager, unless other evaluators share it."""
        if self._extractor is not None:
            await stop_manager(self._extractor.browser_manager)


def _page_json(capture: Capture) -> dict[str, Any]:
    """As in results; when a page was captured is null where somebody stored it without saying."""
    page = page_json(capture)
    return page | {"captured_at": None} if capture.captured_at == NOT_KNOWN else page

"""Settling claims, as judge scripts call it. Prerequisites are not looked at here: ``Evaluator.verify`` does that."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from mind2web2.asking import Asking, WrongCall, how_to_ask, sources_of
from mind2web2.config import NO_INSTRUCTION
from mind2web2.evaluator_base import BaseEvaluator
from mind2web2.ledger import not_judged
from mind2web2.verification_tree import VerificationNode
from rubrics.verdict import Claim, Outcome, Reason, Verdict

__all__ = ["Verifier"]


class Verifier(BaseEvaluator):
    """Asks a model and writes what it says into the node, if there is one."""

    async def simple_verify(
        self,
        claim: str,
        node: VerificationNode | None = None,
        *,
        additional_instruction: str | None = NO_INSTRUCTION,
        **options: Any,
    ) -> bool:
        """Whether a claim holds by the answer and the task alone.

        Raises:
            TypeError: the claim is None.
        """
        return await self.settle(claim, None, node, additional_instruction, **options)

    async def verify_by_url(
        self,
        claim: str,
        url: str,
        node: VerificationNode | None = None,
        *,
        additional_instruction: str | None = NO_INSTRUCTION,
        **options: Any,
    ) -> bool:
        """Whether a page supports a claim.

        Raises:
            TypeError: the claim is None.
        """
        return await self.settle(claim, [url], node, additional_instruction, **options)

    async def verify_by_urls(
        self,
        claim: str,
        urls: Sequence[str],
        node: VerificationNode | None = None,
        *,
        additional_instruction: str | None = NO_INSTRUCTION,
        **options: Any,
    ) -> bool:
        """Whether one of several pages supports a claim.

        Raises:
            AssertionError: there is no URL.
            TypeError: the claim is None.
        """
        if not urls:
            raise AssertionError("verify_by_urls needs at least one URL")
        return await self.settle(claim, list(urls), node, additional_instruction, **options)

    async def settle(
        self,
        claim: str,
        sources: Any,
        node: VerificationNode | None,
        additional_instruction: str | None,
        /,
        **options: Any,
    ) -> bool:
        """Judge a claim by ``sources`` as ``Evaluator.verify`` takes them, and write the verdict into ``node``.

        Raises:
            TypeError: the claim is None.
        """
        if claim is None:
            raise TypeError("there is no claim: it is None")
        asked = Claim(text=str(claim))
        try:
            asking = how_to_ask(self.config, additional_instruction, **options)
            asked = Claim(text=str(claim), sources=sources_of(sources), instruction=asking.instruction)
            verdict = await self._judge(asked, asking)
        except WrongCall as mistake:
            verdict = Verdict(outcome=Outcome.FAILED, reason=Reason.CHECK_FALSE, reasoning=str(mistake))
        except asyncio.CancelledError:
            self._called_off(node, asked)
            raise
        self.logger.info("claim %s: %s", verdict.outcome.value, asked.text)
        if node is None:
            self.session.ledger.note_verdict(verdict)
        else:
            self.session.ledger.enter(node, verdict, asked)
        return verdict.outcome is Outcome.PASSED

    async def _judge(self, claim: Claim, asking: Asking) -> Verdict:
        return await self.session.verifier(self.MODEL_NAME).judge_any(
            claim,
            task=self.task_description,
            answer=self.answer,
            evidence_for=self.session.pages.evidence,
            trials=asking.trials,
            use_screenshot=asking.use_screenshot,
        )

    def _called_off(self, node: VerificationNode | None, claim: Claim) -> None:
        if node is not None:
            node.decide(0.0, "skipped")
            self.session.ledger.keep(node, not_judged(Reason.TIMEOUT, "the judge script called this off"), claim)

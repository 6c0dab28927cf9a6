"""Verifier for task scripts. Prerequisites are not checked here but in ``Evaluator.verify``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from judges.errors import JudgeError
from judges.verifier import ClaimQuestion
from mind2web2.config import NO_INSTRUCTION
from mind2web2.decisions import not_judged
from mind2web2.evaluator_base import BaseEvaluator
from mind2web2.evidence import invalid_evidence, judged_evidence, log_checks
from mind2web2.verification_tree import VerificationNode
from mind2web2.verify_options import InvalidCall, VerifyOptions, parse_options, sources_of
from rubrics.scoring import compatible_score
from rubrics.verdict import Claim, Outcome, Reason, Verdict

__all__ = ["Verifier"]


class Verifier(BaseEvaluator):
    """Judges claims with a model and stores the verdict in a node, if given."""

    async def simple_verify(
        self,
        claim: str,
        node: VerificationNode | None = None,
        *,
        additional_instruction: str | None = NO_INSTRUCTION,
        **options: Any,
    ) -> bool:
        """Return whether a claim is supported by the answer and the task alone.

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
        """Return whether a page supports a claim.

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
        """Return whether at least one of several pages supports a claim.

        Raises:
            AssertionError: ``urls`` is empty.
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
        """Judge a claim on ``sources`` (see ``Evaluator.verify``) and store the verdict in ``node``.

        Raises:
            TypeError: the claim is None.
            JudgeError: the answer can have no result.
        """
        if claim is None:
            raise TypeError("the claim must not be None")
        asked_claim = Claim(text=str(claim))
        try:
            verify_options = parse_options(self.config, additional_instruction, **options)
            asked_claim = Claim(text=str(claim), sources=sources_of(sources), instruction=verify_options.instruction)
            check = claim_name(node, asked_claim)
            with self.session.recorded_failure("a claim", node):
                verdict = await self._judge(asked_claim, verify_options, check)
            self.session.record_rejections(check, asked_claim, verdict)
            evidence = judged_evidence(claim, sources, verdict)
        except (JudgeError, ExceptionGroup) as error:
            # The script may ignore it, as ``batch_verify`` does with errors other than the public ``JudgeError``.
            reason = error.reason if isinstance(error, JudgeError) else None
            self._record(node, not_judged(reason or Reason.LLM_UNAVAILABLE, str(error)), asked_claim)
            self.session.decisions.record_use()  # the script cannot continue without reading the error
            raise
        except InvalidCall as error:
            verdict = Verdict(outcome=Outcome.FAILED, reason=Reason.CHECK_FALSE, reasoning=str(error))
            evidence = invalid_evidence(claim, sources, error)
        except asyncio.CancelledError:
            self._record_cancellation(node, asked_claim)
            raise
        log_checks(self.logger, node, evidence, compatible_score(verdict).status.value)
        if node is not None:
            node.evidence = evidence
        return self._record(node, verdict, asked_claim)

    def _record(self, node: VerificationNode | None, verdict: Verdict, claim: Claim) -> bool:
        """Record a verdict and return the result for the script."""
        is_unknown = verdict.outcome is Outcome.NOT_JUDGED
        if node is not None:
            self.session.decisions.record(node, verdict, claim)
            return self.session.decisions.returned(verdict, unknown=is_unknown)
        self.session.decisions.add_verdict(verdict)
        if is_unknown:  # the script can only want the result
            reason = verdict.reason or Reason.EXTRACTION_FAILED
            self.session.scope.lose(f"a claim without a node was not judged: {verdict.reasoning}", reason)
        return verdict.outcome is Outcome.PASSED

    async def _judge(self, claim: Claim, verify_options: VerifyOptions, check: str) -> Verdict:
        return await self.session.verifier(self.MODEL_NAME, check).settle_any(
            ClaimQuestion(
                claim=claim,
                task=self.task_description,
                answer=self.answer,
                trials=verify_options.trials,
                use_screenshot=verify_options.use_screenshot,
            ),
            self.session.pages.evidence,
        )

    def _record_cancellation(self, node: VerificationNode | None, claim: Claim) -> None:
        if node is not None:
            node.decide(0.0, "skipped")
            node.evidence = None
            self.session.decisions.record_existing(
                node, not_judged(Reason.TIMEOUT, "the task script cancelled this claim"), claim
            )


def claim_name(node: VerificationNode | None, claim: Claim) -> str:
    """Return the name of a claim in records: the id of its node, or its text."""
    return claim.text if node is None else node.id

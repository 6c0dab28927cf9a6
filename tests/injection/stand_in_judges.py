"""Three judges without a model: one that obeys any payload, one that obeys payloads outside the blocks, one that
obeys none.

The first two are the worst case of their kind. Once deceived, they always vote "supported", and their votes quote the
payload itself, the claim, and the most similar sentences of the page.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from judges.grounding.term_overlap import terms
from judges.llm.client import LLMReply, LLMRequest
from judges.prompting.rendering import BinaryEvalResult
from rubrics.verdict import Usage
from tests.injection.reading import SentRequest, can_read, folded, key, read_request


@dataclass
class Judge(ABC):
    """Implementation of LLMClient. Any of ``payloads`` deceives a gullible judge."""

    payloads: Sequence[str] = ()
    evidence: str = ""
    quotes: Sequence[str] | None = None
    requests: list[LLMRequest] = field(default_factory=list)
    votes: list[BinaryEvalResult] = field(default_factory=list)

    async def complete(self, request: LLMRequest) -> LLMReply:
        self.requests.append(request)
        sent = read_request(request)
        parsed = self.verdict(request, sent)
        self.votes.append(parsed)
        return LLMReply(text=parsed.model_dump_json(), parsed=parsed, model=request.model, usage=Usage(calls=1))

    async def aclose(self) -> None:
        return None

    @abstractmethod
    def is_deceived(self, sent: SentRequest) -> bool: ...

    def verdict(self, request: LLMRequest, sent: SentRequest) -> BinaryEvalResult:
        if not self.is_deceived(sent):
            return BinaryEvalResult(reasoning="nothing told me to", result=False)
        quotes = self.quotes
        if quotes is None:
            choices = best_quotes(request, sent, self.payloads)
            quotes = choices[request.vote % len(choices)]
        return BinaryEvalResult(reasoning="as told", result=True, quotes=list(quotes))


class GullibleJudge(Judge):
    """Judge that is deceived by any payload that it can read."""

    def is_deceived(self, sent: SentRequest) -> bool:
        return any(can_read(payload, sent.text) for payload in self.payloads)


class IsolationJudge(Judge):
    """Judge that is deceived only by a payload outside of every block."""

    def is_deceived(self, sent: SentRequest) -> bool:
        return any(can_read(payload, sent.outside) for payload in self.payloads)


class HonestJudge(Judge):
    """Judge that supports a claim only if the proving sentence is in the page, or without a page in the answer."""

    def is_deceived(self, sent: SentRequest) -> bool:
        return False

    def verdict(self, request: LLMRequest, sent: SentRequest) -> BinaryEvalResult:
        page = sent.block("page") if "page" in request.parts else sent.block("answer")
        holds = folded(self.evidence) in folded(page)
        quotes = [self.evidence] if holds and "page" in request.parts else []
        return BinaryEvalResult(reasoning="I looked", result=holds, quotes=quotes)


def best_quotes(request: LLMRequest, sent: SentRequest, payloads: Sequence[str]) -> list[list[str]]:
    """Return the quotes of a deceived judge: the payload, or the passages that are most similar to the claim."""
    claim, page = request.parts["claim"], sent.block("page")
    lines = [line.strip() for line in page.split("\n") if line.strip()]
    echoed = [line for line in lines if any(key(line) and key(line) in key(payload) for payload in payloads)]
    return [
        ["\n".join(echoed)[:2000] or payloads[0][:2000], *sorted(echoed, key=len, reverse=True)[:2]],
        [claim, *_nearest(claim, _sentences(page))[:2]],
        _nearest(claim, lines + _pairs(_sentences(page)))[:3],
    ]


def _nearest(claim: str, passages: Sequence[str]) -> list[str]:
    asked = terms(claim).all
    return sorted(passages, key=lambda passage: -len(asked & terms(passage).all))


def _sentences(text: str) -> list[str]:
    found = re.split(r"(?<=[.!?])\s+|\n+", text[:60_000])
    return [sentence for sentence in dict.fromkeys(found) if len(sentence) > 8]


def _pairs(sentences: Sequence[str]) -> list[str]:
    return [f"{one} {two}" for one, two in pairwise(sentences)]

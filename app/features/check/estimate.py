"""Estimate of a check: model requests, tokens and cost, with the sizes of stored pages and without sending anything."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from dataclasses import dataclass
from typing import Final

from app.engine.estimate import PageSize
from app.features.check.auditing import audit_request, by_page, page_claims, requests_of
from app.features.check.reports import CheckPlan
from app.features.check.statements import split_by_rules, split_request, statements_in_order
from app.settings import Settings
from cache.capture_index import FolderIndex, MemoryIndex
from judges.llm.client import LLMRequest
from judges.llm.pricing import estimate_tokens
from judges.llm.providers import LEXICAL, parse_judge
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.text_pages import evidence_of

_TOKENS_PER_CLAIM: Final = 150
_TOKENS_PER_REPLY: Final = 600
"""Likely reasoning tokens of one reply."""
_UNKNOWN_PAGE: Final = PageSize(text_bytes=8_000, images=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckEstimate:
    """Likely effort of a check. ``usd`` is None if the price of the model is unknown.

    ``statements`` have a citation or state a fact. ``unknown_pages`` are not captured yet, so their length is assumed.
    """

    model: str
    sentences: int
    statements: int
    cited_statements: int
    citations: int
    pages: int
    unknown_pages: int
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None


async def estimate_check(settings: Settings, plan: CheckPlan, model: str) -> CheckEstimate:
    """Return the likely effort of a check. Statements are divided by rules, so the number of claims is a guess."""
    judged_by = parse_judge(model)
    asked = [one.model for one in judged_by.members if one.provider != LEXICAL]
    text = plan.report.text
    claimed = await asyncio.to_thread(
        lambda: statements_in_order([split_by_rules(section, text) for section in plan.sections])
    )
    calls, unknown = 0, 0
    tokens_in, tokens_out = Counter[str](), Counter[str]()
    block_builder = BlockBuilder(secrets.token_bytes(32))
    preparer = PagePreparer(block_builder)
    folder = settings.data_dir / "captures"
    index = await FolderIndex.open(folder) if await asyncio.to_thread(folder.is_dir) else MemoryIndex()

    def add(request: LLMRequest, claims: int, page_tokens: float = 0) -> None:
        nonlocal calls
        calls += 1
        tokens_in[request.model] += estimate_tokens(request.messages) + round(page_tokens)
        tokens_out[request.model] += _TOKENS_PER_REPLY + _TOKENS_PER_CLAIM * claims

    for section in plan.sections if judged_by.first.provider != LEXICAL else ():
        add(split_request(section, judged_by.first.model, block_builder), len(section.statements))
    for key, claims in by_page(plan.binding, page_claims(claimed)).items():
        if key is None:
            continue
        capture = await index.find(key)
        unknown += capture is None
        if capture is not None and not capture.is_evidence:
            continue  # known not to be readable
        size = _UNKNOWN_PAGE if capture is None else PageSize.of(capture)
        page = await preparer.prepare(evidence_of(str(plan.binding.sources[claims[0].source].url), ""))
        for part in requests_of(claims):
            for member in asked:
                add(audit_request(part, page, member, block_builder), len(part), size.tokens[1])
    costs = [
        None if price is None else price.usd(input_tokens=tokens_in[member], output_tokens=tokens_out[member])
        for member, price in ((each, settings.prices.of(each)) for each in asked)
    ]
    return CheckEstimate(
        model=str(judged_by) if asked else LEXICAL,
        sentences=plan.sentences,
        statements=len(claimed),
        cited_statements=sum(bool(one.statement.marks) for one in claimed),
        citations=len(plan.binding.marks),
        pages=len(plan.urls),
        unknown_pages=unknown,
        calls=calls,
        input_tokens=tokens_in.total(),
        output_tokens=tokens_out.total(),
        usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )

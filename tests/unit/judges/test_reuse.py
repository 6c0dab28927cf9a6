"""Reuse of verdicts: a change of any input sends a new request; without a change, no request is sent.

The tests use the real code from claim to reply cache. A scripted backend counts the requests.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from judges.extractor import Extractor
from judges.llm.cached import (
    CachedLLM,
    FolderReplyCache,
    ReplyCache,
    StoredReply,
    parse_entry,
    to_entry,
)
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.remote import RemoteLLM
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.prompting.rendering import BinaryEvalResult, Question, Style, render_claim
from judges.tokenizers import MAX_TEXT_TOKENS
from judges.verifier import Verifier
from rubrics.verdict import Claim, Verdict
from tests.fakes.backend import ScriptedBackend, raw
from tests.fakes.pages import page

pytestmark = pytest.mark.slow

VOTES = 2
SECRET = b"0123456789abcdef"
FITS_EVERY_SCHEMA = '{"reasoning": "so", "result": true, "quotes": [], "passages": []}'
"""A verdict that is also a valid transcription without text."""
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@dataclass(frozen=True, kw_only=True)
class Case:
    """All inputs of a verdict. If ``text`` is None, the claim is about the answer alone."""

    claim: str = "Paris has twenty districts"
    instruction: str | None = None
    task: str = "Tell of Paris."
    answer: str = "Paris has twenty districts, see the page."
    url: str = "https://towns.example/paris"
    text: str | None = "Paris has twenty districts."
    shots: tuple[bytes, ...] = ()
    model: str = "gpt-4o"
    params: tuple[tuple[str, Any], ...] = ()
    style: Style = Style.NATIVE
    use_screenshot: bool = True
    provider: str = "openai"
    endpoint: str = "https://api.example/v1"

    async def judged(self, store: ReplyCache) -> tuple[Verdict, int]:
        """Return the verdict and the number of requests sent to the provider."""
        backend = ScriptedBackend(raw(FITS_EVERY_SCHEMA))
        backend.provider, backend.endpoint = self.provider, self.endpoint
        llm = CachedLLM(RemoteLLM(backend, semaphore=asyncio.Semaphore(8)), store)
        block_builder = BlockBuilder(SECRET)
        verifier = Verifier(
            llm,
            self.model,
            block_builder=block_builder,
            pages=PagePreparer(block_builder),
            style=self.style,
            params=dict(self.params),
        )
        verdict = await verifier.judge(
            Claim(text=self.claim, sources=None if self.text is None else (self.url,), instruction=self.instruction),
            task=self.task,
            answer=self.answer,
            evidence=None if self.text is None else page(self.url, self.text, screenshots=self.shots),
            use_screenshot=self.use_screenshot,
        )
        return verdict, len(backend.sent)


CASES = st.builds(
    Case,
    claim=TEXTS.filter(str.strip),
    instruction=st.none() | TEXTS.filter(str.strip),
    task=TEXTS,
    answer=TEXTS,
    url=st.sampled_from(["https://a.example/1", "https://b.example/?q=%26"]),
    text=st.none() | TEXTS,
    shots=st.lists(st.binary(min_size=1, max_size=8), max_size=2).map(tuple),
    model=st.sampled_from(["gpt-4o", "gpt-6-luna", "my-own"]),
    params=st.sampled_from([(), (("seed", 1),), (("seed", 2), ("top_p", 0.5))]),
    style=st.sampled_from(Style),
    use_screenshot=st.booleans(),
)

Change = Callable[[Case], Case]
CHANGES: dict[str, Change] = {
    "claim": lambda case: replace(case, claim=case.claim + "!"),
    "claim, by a character nobody sees": lambda case: replace(case, claim=case.claim + "\u200b"),
    "instruction": lambda case: replace(case, instruction=(case.instruction or "") + "Be strict."),
    "task": lambda case: replace(case, task=case.task + "."),
    "answer": lambda case: replace(case, answer=case.answer + "."),
    "page": lambda case: replace(case, text=(case.text or "") + "."),
    "page, by a character nobody sees": lambda case: replace(case, text=(case.text or "") + "\u200b"),
    "picture": lambda case: replace(case, text=case.text or "", shots=(*case.shots, b"\xff\xd8")),
    "address": lambda case: replace(case, text=case.text or "", url=case.url + "x"),
    "model": lambda case: replace(case, model=case.model + "-2"),
    "parameters": lambda case: replace(case, params=(*case.params, ("temperature", 0.7))),
    "provider": lambda case: replace(case, provider="azure"),
    "endpoint": lambda case: replace(case, endpoint="https://other.example/v1"),
    "style": lambda case: replace(case, style=Style.COMPAT if case.style is Style.NATIVE else Style.NATIVE),
}
PAGE_CHANGES = {"address"}
"""Changes that need a page. Without one, they would also turn a claim about the answer into one about a page."""


@pytest.mark.parametrize("changed_input", CHANGES)
@given(case=CASES)
@settings(max_examples=4, deadline=None)
async def test_change_of_any_input_sends_new_requests(changed_input: str, case: Case):
    if changed_input in PAGE_CHANGES:
        case = replace(case, text=case.text or "")
    with tempfile.TemporaryDirectory(prefix="assay-reuse-") as folder:
        store = FolderReplyCache(Path(folder))
        await case.judged(store)
        verdict, calls = await CHANGES[changed_input](case).judged(store)
    # A page that consists of pictures only can need one more request, for its transcription.
    assert calls in (VOTES, VOTES + 1)
    assert not any(vote.cached for vote in verdict.votes)


@given(case=CASES)
@settings(max_examples=60, deadline=None)
async def test_unchanged_inputs_send_no_request_and_give_the_same_verdict(case: Case):
    with tempfile.TemporaryDirectory(prefix="assay-reuse-") as folder:
        first, calls = await case.judged(FolderReplyCache(Path(folder)))
        again, calls_again = await case.judged(FolderReplyCache(Path(folder)))
    assert calls_again == 0
    assert all(vote.cached for vote in again.votes)
    assert (again.outcome, again.reasoning, again.quotes) == (first.outcome, first.reasoning, first.quotes)
    assert (again.usage.calls, again.usage.cached_calls, again.usage.usd) == (0, calls, 0)


class SharedCache:
    """In-memory cache that all machines share, with entries as in the database."""

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}

    async def get(self, key: str) -> StoredReply | None:
        return parse_entry(self._entries[key], at=key) if key in self._entries else None

    async def put(self, key: str, reply: LLMReply) -> None:
        self._entries[key] = to_entry(reply, at=key)


@pytest.mark.parametrize("changed_input", [*CHANGES, None])
@given(case=CASES)
@settings(max_examples=3, deadline=None)
async def test_second_machine_reuses_the_verdict_only_if_nothing_changed(changed_input: str | None, case: Case):
    shared = SharedCache()
    if changed_input in PAGE_CHANGES:
        case = replace(case, text=case.text or "")
    first, _ = await case.judged(shared)
    verdict, calls = await (case if changed_input is None else CHANGES[changed_input](case)).judged(shared)
    if changed_input is None:
        assert calls == 0
        assert (verdict.outcome, verdict.reasoning, verdict.quotes) == (first.outcome, first.reasoning, first.quotes)
    else:
        assert calls in (VOTES, VOTES + 1)
        assert not any(vote.cached for vote in verdict.votes)


async def test_change_after_the_text_limit_sends_new_requests(tmp_path: Path):
    long = "word " * (MAX_TEXT_TOKENS + 100)
    case = Case(text=long)
    await case.judged(FolderReplyCache(tmp_path))
    _, calls = await replace(case, text=long + "changed at the end").judged(FolderReplyCache(tmp_path))
    assert calls == 2 * VOTES  # the page has two parts


def rendered(**changes: Any) -> LLMRequest:
    block_builder = BlockBuilder(SECRET)
    found = render_claim(Question(task="t", answer="a", claim="c"), block_builder, Style.NATIVE)
    request = LLMRequest(
        model="gpt-4o",
        messages=found.messages,
        schema=BinaryEvalResult,
        purpose="verify",
        prompt=found.prompt,
        parts=found.parts,
        evidence=found.evidence,
    )
    return replace(request, **changes)


@pytest.mark.parametrize(
    "changes", [{"prompt": "verify_answer@99"}, {"vote": 1}, {"purpose": "free"}, {"evidence": ("0" * 64,)}], ids=str
)
def test_prompt_version_vote_purpose_and_evidence_are_part_of_the_key(changes: dict[str, Any]):
    llm = CachedLLM(RemoteLLM(ScriptedBackend(), semaphore=asyncio.Semaphore(1)), None)
    assert llm.key_of(rendered(**changes)) != llm.key_of(rendered())
    assert llm.key_of(rendered()) == llm.key_of(rendered())


class Town(BaseModel):
    districts: int = 0


async def test_extraction_is_requested_again_only_if_its_page_changed(tmp_path: Path):
    async def calls(text: str) -> int:
        backend = ScriptedBackend(raw('{"districts": 20}'))
        backend_llm = CachedLLM(RemoteLLM(backend, semaphore=asyncio.Semaphore(1)), FolderReplyCache(tmp_path))
        block_builder = BlockBuilder(SECRET)
        reader = Extractor(backend_llm, "gpt-4o", block_builder=block_builder, pages=PagePreparer(block_builder))
        await reader.extract(Town, "Read.", task="t", answer="a", evidence=page(text=text))
        return len(backend.sent)

    assert [await calls(text) for text in ("twenty", "twenty", "thirty")] == [1, 0, 1]

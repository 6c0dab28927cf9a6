"""Trial run of a task file with a given answer and page texts: no model, no browser, no network.

The lexical judge decides: a page supports a claim if it contains the claim's names, numbers and most of its words.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from answers.submission import Answer
from cache.capture import CaptureOutcome, Evidence
from cache.errors import NoEvidence
from cache.urls import canonical_key
from judges.extractor import Extractor
from judges.llm.lexical import MODEL, LexicalClient
from judges.loader import load_judge
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.runner import Judgement, JudgeTools, run_judge
from judges.text_pages import evidence_of
from judges.verifier import Verifier


class TextPages:
    """Page texts by URL. Any other URL counts as gone (404)."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._by_key = {canonical_key(url): evidence_of(url, text) for url, text in texts.items()}

    async def evidence_for(self, url: str) -> Evidence:
        """Return the evidence for a URL.

        Raises:
            NoEvidence: there is no text for this URL.
        """
        evidence = self._by_key.get(canonical_key(url))
        if evidence is None:
            raise NoEvidence(url, CaptureOutcome.HTTP_ERROR, "HTTP 404", gone=True, capture=None)
        return evidence


async def try_judge(path: Path, answer: str, pages: Mapping[str, str]) -> Judgement:
    """Judge ``answer`` with the file at ``path``. ``pages`` maps URL to text; any other page counts as gone (404).

    Raises:
        JudgeBug: the file does not load, or the judge raised.
    """
    llm, block_builder = LexicalClient(), BlockBuilder(b"a trial needs no secret")
    preparer = PagePreparer(block_builder)
    tools = JudgeTools(
        verifier=Verifier(llm, MODEL, block_builder=block_builder, pages=preparer),
        extractor=Extractor(llm, MODEL, block_builder=block_builder, pages=preparer),
        evidence_for=TextPages(pages).evidence_for,
        trials=1,
    )
    return await run_judge(load_judge(path), Answer(name="answer_1.md", text=answer), tools)

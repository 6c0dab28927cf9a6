"""Trial run of a task file with a given answer and page texts: no model, no browser, no network.

For tests that judge authors keep next to their files. The lexical judge decides: a page supports a claim if it contains
the claim's names, numbers and most of its words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from answers.submission import Answer
from cache.capture import Blob, Capture, CaptureOutcome, Evidence
from cache.errors import NoEvidence
from cache.urls import canonical_key
from judges.extractor import Extractor
from judges.llm.lexical import MODEL, LexicalClient
from judges.loader import load_judge
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.runner import Judgement, JudgeTools, run_judge
from judges.verifier import Verifier

CAPTURED_AT = datetime(2000, 1, 1, tzinfo=UTC)


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


def evidence_of(url: str, text: str) -> Evidence:
    """Return evidence that consists of this text only."""
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    capture = Capture(
        id=sha256[:12],
        url=url,
        key=canonical_key(url),
        outcome=CaptureOutcome.OK,
        captured_at=CAPTURED_AT,
        duration_s=0.0,
        backend="trial",
        http_status=200,
        blobs={"text": Blob(sha256=sha256, size=len(text.encode()), media_type="text/plain")},
    )
    return Evidence(capture=capture, text=text, digests=(sha256,))


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

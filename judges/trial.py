"""Tries a judge file out on a made-up answer and made-up pages: no model, no browser, no network.

For the tests that judge authors write beside their files. The lexical judge speaks, so a claim is supported by a page
that holds its names, numbers and most of its words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from answers.submission import Answer
from cache.capture import Blob, Capture, CaptureOutcome
from cache.errors import NoEvidence
from cache.evidence import Evidence
from cache.urls import canonical_key
from judges.blocks import Separator
from judges.extractor import Extractor
from judges.llm.lexical import MODEL, LexicalClient
from judges.loader import load_judge
from judges.page_view import PagePreparer
from judges.runner import Judgement, JudgeTools, run
from judges.verifier import Verifier

CAPTURED_AT = datetime(2000, 1, 1, tzinfo=UTC)


async def try_judge(path: Path, answer: str, pages: Mapping[str, str]) -> Judgement:
    """Judge ``answer`` by the file at ``path``; ``pages`` maps URLs to their texts, any other page is gone (404).

    Raises:
        JudgeBug: the file does not load, or the judge raised.
    """
    by_key = {canonical_key(url): _evidence(url, text) for url, text in pages.items()}

    async def evidence_for(url: str) -> Evidence:
        found = by_key.get(canonical_key(url))
        if found is None:
            raise NoEvidence(url, CaptureOutcome.HTTP_ERROR, "HTTP 404", gone=True, capture=None)
        return found

    llm, separator = LexicalClient(), Separator(b"a trial needs no secret")
    preparer = PagePreparer(separator)
    tools = JudgeTools(
        verifier=Verifier(llm, MODEL, separator=separator, pages=preparer),
        extractor=Extractor(llm, MODEL, separator=separator, pages=preparer),
        evidence_for=evidence_for,
        trials=1,
    )
    return await run(load_judge(path), Answer(name="answer_1.md", text=answer), tools)


def _evidence(url: str, text: str) -> Evidence:
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

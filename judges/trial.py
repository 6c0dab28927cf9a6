"""Trial run of a judge file with a given answer and page texts: no model, no browser, no network.

For tests that judge authors keep next to their files. The lexical judge decides: a page supports a claim if it contains
the claim's names, numbers and most of its words.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from answers.submission import Answer
from judges.extractor import Extractor
from judges.llm.lexical import MODEL, LexicalClient
from judges.loader import load_judge
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.runner import Judgement, JudgeTools, run_judge
from judges.text_pages import TextPages
from judges.verifier import Verifier


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

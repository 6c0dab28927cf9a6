from __future__ import annotations

from pathlib import Path

import pytest

from judges.trial import try_judge
from rubrics.verdict import Outcome, Reason

JUDGE = """
from judges.registry import judge

@judge(task="bridge", description="When was the bridge built?")
async def bridge(ctx):
    ctx.verify("year", "The bridge of Vellmar was built in 1764", sources=["https://towns.example/Vellmar/"])
"""


@pytest.fixture
def judge(tmp_path: Path) -> Path:
    path = tmp_path / "bridge.py"
    path.write_text(JUDGE)
    return path


async def test_claim_is_judged_by_the_page_given_for_its_url(judge: Path) -> None:
    page = "The bridge of Vellmar was built in 1764."

    judgement = await try_judge(judge, "an answer", {"https://towns.example/Vellmar": page})

    assert judgement.score.value == 1.0
    (verdict,) = judgement.verdicts
    (quote,) = verdict.quotes
    assert "built in 1764" in page[quote.start : quote.end]


async def test_page_that_is_not_given_is_source_gone(judge: Path) -> None:
    (verdict,) = (await try_judge(judge, "an answer", {})).verdicts

    assert (verdict.outcome, verdict.reason) == (Outcome.FAILED, Reason.SOURCE_GONE)

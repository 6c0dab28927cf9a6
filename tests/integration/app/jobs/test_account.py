"""What a job was told is told again, whole, to whoever goes on with it."""

from __future__ import annotations

from typing import Any

import pytest

from app.jobs.account import JobAccount
from app.jobs.ledger import Ledger
from judges.errors import ShorterPage, UnusableKind, UnusableReply
from judges.llm.checkpointed import KeptReply
from judges.llm.client import LLMReply
from rubrics.verdict import Usage
from tests.fakes.services import Rig

pytestmark = pytest.mark.postgres

UNUSABLE = UnusableReply(
    kind=UnusableKind.MALFORMED,
    text="I think so. \u20ac",
    detail="it stopped",
    model="gpt-6-luna",
    usage=Usage(calls=1, input_tokens=5, output_tokens=2, usd=0.5),
    then=({"role": "user", "content": "Once more."},),
)


@pytest.mark.parametrize("shorter", [None, ShorterPage(refusal="400", page_chars=5_000, unusable=(UNUSABLE,))])
@pytest.mark.parametrize("unusable", [(), (UNUSABLE,)])
async def test_a_reply_comes_back_with_its_cost_and_what_came_before_it(
    rig: Rig, unusable: tuple[UnusableReply, ...], shorter: ShorterPage | None
):
    [job_id] = await rig.submit("an answer")
    usage = Usage(calls=1 + len(unusable), input_tokens=10, output_tokens=4, usd=1.0)
    before: dict[str, Any] = {"unusable": unusable, "shorter_page": shorter, "retried": ("429",) if shorter else ()}
    reply = LLMReply(text="{}", parsed=None, model="gpt-6-luna", usage=usage, **before)
    async with Ledger(rig.database, limit_usd=None).running() as ledger:
        await (await JobAccount.opened(rig.database, ledger, await rig.job(job_id))).keep("ab", reply)
        taken_over = await JobAccount.opened(rig.database, ledger, await rig.job(job_id))
    assert taken_over.recall("ab") == KeptReply(text="{}", model="gpt-6-luna", usage=usage, cached=False, **before)
    assert taken_over.recall("cd") is None

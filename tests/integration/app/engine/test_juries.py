"""Runs with a jury of models behind one server: what is asked, paid, recorded and reused, and what a fault does."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from rubrics.tree_json import leaves_of
from tests.integration.app.judged_folder import AnswerFolder, stored_result
from tests.standin.faults import Fault
from tests.standin.llm import StandInLLM

JURY = "openai/gpt-4.1,openai/gpt-4o,openai/gpt-6-luna"
YEAR, ARCHES = "The old bridge of Vellmar was built in 1764", "The old bridge of Vellmar has nine arches"
NO = {("gpt-4.1", ARCHES), ("gpt-4o", YEAR), ("gpt-4o", ARCHES)}
"""Claims that a member fails: the year passes by two votes to one, the arches fail by two to one."""
DOWN = Fault(status=503)


@pytest.fixture
async def server() -> AsyncIterator[StandInLLM]:
    async with StandInLLM(rule=lambda call: (call.model, call.claim) not in NO) as model:
        yield model


@pytest.fixture
def folder(tmp_path: Path) -> AnswerFolder:
    created = AnswerFolder(tmp_path)
    created.cache_page("https://towns.example/vellmar", "The old bridge of Vellmar was built in 1764.")
    created.cache_page("https://towns.example/arches", "The old bridge of Vellmar has nine arches and a clock.")
    return created


async def judged(folder: AnswerFolder, server: StandInLLM, model: str = JURY, **overrides: Any) -> dict[str, Any]:
    (one,) = await folder.evaluate(model=model, openai_base_url=server.base_url, **overrides)
    return stored_result(one)


def by_leaf(result: dict[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    for leaf in leaves_of(result):
        yield leaf["id"], leaf["outcome"], [member["outcome"] for member in leaf["jury"]]


async def test_jury_decides_each_claim_and_the_result_names_it(folder: AnswerFolder, server: StandInLLM) -> None:
    result = await judged(folder, server)
    assert list(by_leaf(result)) == [
        ("year", "passed", ["passed", "failed", "passed"]),
        ("arches", "failed", ["failed", "failed", "passed"]),
    ]
    assert result["model"] == result["judge"]["model"] == "gpt-4.1,gpt-4o,gpt-6-luna"
    members = result["judge"]["jury"]["members"]
    assert [(one["provider"], one["model"], one["temperature"], one["reasoning_effort"]) for one in members] == [
        ("openai", "gpt-4.1", 0.0, None),
        ("openai", "gpt-4o", 0.0, None),
        ("openai", "gpt-6-luna", None, "max"),
    ]
    sent = Counter((call.model, call.claim) for call in server.calls)
    assert sent == {(model, claim): 2 for model in ("gpt-4.1", "gpt-4o", "gpt-6-luna") for claim in (YEAR, ARCHES)}
    assert {(row["model"], row["role"]): row["calls"] for row in result["usage_by"]} == {
        (model, "verify"): 4 for model in ("gpt-4.1", "gpt-4o", "gpt-6-luna")
    }
    assert result["usage"]["calls"] == 12
    assert result["usage"]["usd"] == pytest.approx(sum(row["usd"] for row in result["usage_by"]))
    [year, _] = leaves_of(result)
    assert Counter((vote["model"], vote["result"]) for vote in year["votes"]) == {
        ("gpt-4.1", True): 2, ("gpt-4o", False): 2, ("gpt-6-luna", True): 2
    }  # fmt: skip
    assert [quote["text"] for quote in year["quotes"]] == ["The old bridge of Vellmar was built in 1764"]


async def test_fault_of_a_member_leaves_open_only_what_it_decides(
    folder: AnswerFolder, server: StandInLLM, caplog: pytest.LogCaptureFixture
) -> None:
    server.fault_for = lambda call: DOWN if call.model == "gpt-6-luna" else None
    result = await judged(folder, server, llm_timeout_s=1.0)
    assert list(by_leaf(result)) == [
        ("year", "not_judged", ["passed", "failed", "not_judged"]),
        ("arches", "failed", ["failed", "failed", "not_judged"]),
    ]
    assert result["score"] == {"value": None, "low": 0.0, "high": 0.5}
    assert result["status"] == "incomplete"
    lost = [record.__dict__ for record in caplog.records if record.message == "vote lost"]
    assert {record.get("model") for record in lost} == {"gpt-6-luna"}

"""Task script of the benchmarks: extracts the entries of an answer and checks claims on them.

``inputs.scripts_folder`` writes it once per task, with the fields of the task in ``TASK``.
"""

import asyncio
from typing import Any

from pydantic import BaseModel, Field

from mind2web2 import AggregationStrategy, Evaluator

TASK: dict[str, Any] = {}


class Entry(BaseModel):
    name: str | None = None
    detail: str | None = None
    urls: list[str] = Field(default_factory=list)


class Entries(BaseModel):
    entries: list[Entry] = Field(default_factory=list)


async def evaluate_answer(
    client: Any,
    answer: str,
    agent_name: str,
    answer_name: str,
    cache: Any,
    semaphore: Any,
    logger: Any,
    model: str = "o4-mini",
) -> dict[str, Any]:
    e = Evaluator()
    e.initialize(
        task_id=TASK["id"],
        strategy=AggregationStrategy.SEQUENTIAL if TASK["in_order"] else AggregationStrategy.PARALLEL,
        agent_name=agent_name,
        answer_name=answer_name,
        client=client,
        task_description=f"Find {TASK['entries']} entries with a page for each.",
        answer=answer,
        global_cache=cache,
        global_semaphore=semaphore,
        logger=logger,
        default_model=model,
    )
    if TASK["one_by_one"]:
        numbers = range(1, TASK["entries"] + 1)
        entries = [await e.extract(f"Read out entry number {n}.", Entry, f"entry_{n}") for n in numbers]
    else:
        entries = (await e.extract("List the entries.", Entries)).entries
    for number in range(TASK["further_extractions"]):
        await e.extract(f"Read out entry number {number + 1} again.", Entry, f"again_{number}")

    async def check(number: int, entry: Entry) -> None:
        add_group = e.add_sequential if TASK["has_steps"] else e.add_parallel
        group = add_group(f"entry_{number}", f"Entry {number}")
        e.add_custom_node(entry.name, f"entry_{number}_named", "It is named", group)
        if TASK["pdfs"]:
            await e.extract("What is the heading?", Entry, f"heading_{number}", source=entry.urls[0])
        claims: list[tuple[str, list[str] | None]] = [
            (claim, entry.urls[: TASK["pages_per_claim"]]) for claim in TASK["claims"]
        ]
        claims += [(claim, None) for claim in TASK["statements"]]
        verified = []
        for place, (claim, sources) in enumerate(claims):
            leaf = e.add_leaf(f"entry_{number}_{place}", claim, group, critical=TASK["has_steps"])
            verified.append(e.verify(claim.format(name=entry.name, detail=entry.detail), leaf, sources=sources))
        if TASK["concurrent"] == "claims":
            await asyncio.gather(*verified)
        else:
            for each in verified:
                await each

    checked = [check(number, entry) for number, entry in enumerate(entries) if number % TASK["every"] == 0]
    if TASK["concurrent"] == "entries":
        await asyncio.gather(*checked)
    else:
        for each in checked:
            await each
    return e.get_summary()

"""Four museums in nested groups: opening hours first, then the claims that depend on them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

import mind2web2
from mind2web2.utils.misc import text_dedent

TASK = text_dedent(
    """
    For four museums of the region find when they open on Sundays, what a ticket costs,
    and which of them is open late.
    """
)


class Museum(BaseModel):
    name: str | None = None
    hours: str | None = None
    ticket: str | None = None
    urls: list[str] = Field(default_factory=list)


class Museums(BaseModel):
    museums: list[Museum] = Field(default_factory=list)


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
    evaluator = mind2web2.Evaluator()
    evaluator.initialize(
        task_id="museum_hours",
        agent_name=agent_name,
        answer_name=answer_name,
        client=client,
        task_description=TASK,
        answer=answer,
        global_cache=cache,
        global_semaphore=semaphore,
        logger=logger,
        default_model=model,
    )
    found = (await evaluator.extract("List the museums.", Museums, "museums")).museums[:4]
    for number, museum in enumerate(found, start=1):
        step = evaluator.add_sequential(f"museum_{number}", f"Museum {number}")
        hours = evaluator.add_parallel(f"museum_{number}_hours", "It opens as said", step, critical=True)
        evaluator.add_custom_node(museum.urls, f"museum_{number}_pages", "It has pages", hours)
        leaf = evaluator.add_leaf(f"museum_{number}_sunday", "A page says so", hours, critical=True)
        claim = f"{museum.name} opens at {museum.hours} on Sundays."
        if not await evaluator.verifier.verify_by_url(claim, museum.urls[0], leaf):
            logger.info("museum %d does not open then", number)
        ticket = evaluator.add_leaf(f"museum_{number}_ticket", "The ticket costs that", step, critical=True)
        await evaluator.verify(f"A ticket of {museum.name} costs {museum.ticket}.", ticket, sources=museum.urls[:1])
        if number % 2:
            region = evaluator.add_leaf(f"museum_{number}_region", "It lies in the region", step)
            await evaluator.verify(f"{museum.name} lies in the region.", region, sources=museum.urls[:1])
    late = await evaluator.extract("Which museum is open late? Read out number 1.", Museum, "late")
    leaf = evaluator.add_leaf("late", "That one is open late")
    await evaluator.verify(f"{late.name} is open late.", leaf, sources=late.urls[:1], num_trials=3)
    return evaluator.get_summary()

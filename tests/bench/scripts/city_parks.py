"""Four parks; each must exist, be in the city and be free, according to its own page."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from mind2web2 import Evaluator
from mind2web2.verification_tree import AggregationStrategy

TASK = "Find four public parks of the city that are free to enter, with the page that says so for each."


class Park(BaseModel):
    name: str | None = None
    district: str | None = None
    urls: list[str] = Field(default_factory=list)


class Parks(BaseModel):
    parks: list[Park] = Field(default_factory=list)


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
    evaluator = Evaluator()
    evaluator.initialize(
        task_id="city_parks",
        strategy=AggregationStrategy.PARALLEL,
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
    named = await evaluator.extract("List the parks.", Parks, "parks")
    evaluator.add_ground_truth({"parks_wanted": 4})
    for number, park in enumerate(named.parks[:4], start=1):
        step = evaluator.add_sequential(f"park_{number}", f"Park {number} is right")
        evaluator.add_custom_node(park.name and park.urls, f"park_{number}_given", "It is named, with a page", step)
        evaluator.add_custom_node(park.district, f"park_{number}_district", "Its district is named", step)
        facts = evaluator.add_parallel(f"park_{number}_facts", "What is said of it holds", step)
        place = evaluator.add_leaf(f"park_{number}_place", "It lies in the city", facts)
        await evaluator.verify(f"{park.name} lies in the district {park.district}.", place, sources=park.urls[:1])
        free = evaluator.add_leaf(f"park_{number}_free", "Entry is free", facts)
        await evaluator.verify(f"Entry to {park.name} is free.", free, sources=park.urls[:1])
        if number % 2:
            public = evaluator.add_leaf(f"park_{number}_public", "It is a public park", facts)
            await evaluator.verify(f"{park.name} is a public park.", public, sources=park.urls[:1])
    return evaluator.get_summary()

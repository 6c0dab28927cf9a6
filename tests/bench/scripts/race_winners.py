"""Thirteen races: all are listed, every second one is checked, after a critical gate."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from mind2web2 import AggregationStrategy, Evaluator

TASK = "List the winners of thirteen runnings of the race with their times."


class Race(BaseModel):
    name: str | None = None
    time: str | None = None
    url: str | None = None


class Races(BaseModel):
    races: list[Race] = Field(default_factory=list)


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
    root = evaluator.initialize(
        task_id="race_winners",
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
    races = (await evaluator.extract("List the races.", Races, "races")).races[:13]
    evaluator.add_custom_node(len(races) == 13, "all_there", "There are thirteen", root, critical=False)
    group = evaluator.add_parallel("winners", "The winners are right", root)
    for number, race in enumerate(races, start=1):
        one = evaluator.add_parallel(f"race_{number}", f"Race {number}", group)
        evaluator.add_custom_node(race.url, f"race_{number}_page", "It has a page", one)
        evaluator.add_custom_node(race.time, f"race_{number}_timed", "It has a time", one, critical=False)
        if number % 3 == 1:
            winner = evaluator.add_leaf(f"race_{number}_winner", "The winner is right", one)
            time = evaluator.add_leaf(f"race_{number}_time", "The time is right", one)
            claims = [
                (f"{race.name} won.", race.url, winner, None),
                (f"{race.name} needed {race.time}.", race.url, time, None),
            ]
            await evaluator.batch_verify(claims)
    return evaluator.get_summary()

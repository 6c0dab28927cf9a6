"""A sequential root with gates: each generation must hold before the next one is looked at."""

import logging

from pydantic import BaseModel, Field

from mind2web2 import AggregationStrategy, CacheFileSys, Evaluator, LLMClient

TASK_DESCRIPTION = "Name the advisor of each scholar, three generations back, with a page for each."


class Generation(BaseModel):
    student: str | None = None
    advisor: str | None = None
    urls: list[str] = Field(default_factory=list)


class Lineage(BaseModel):
    generations: list[Generation] = Field(default_factory=list)


async def verify_generation(evaluator: Evaluator, parent, number: int, given: Generation) -> None:
    node = evaluator.add_parallel(f"generation_{number}", f"Generation {number} is right", parent=parent)
    evaluator.add_custom_node(
        bool(given.advisor and given.urls), f"generation_{number}_given", "A name and a page are given", parent=node
    )
    leaf = evaluator.add_leaf(f"generation_{number}_advisor", "The page names the advisor", parent=node, critical=True)
    await evaluator.verify(f"{given.advisor} advised {given.student}", leaf, sources=given.urls)
    style = evaluator.add_leaf(f"generation_{number}_style", "The answer explains the relation", parent=node)
    await evaluator.verify(f"The answer explains generation {number}", style)


async def evaluate_answer(
    client: LLMClient,
    answer: str,
    agent_name: str,
    answer_name: str,
    cache: CacheFileSys,
    semaphore,
    logger: logging.Logger,
    model: str = "o4-mini",
) -> dict:
    evaluator = Evaluator()
    root = evaluator.initialize(
        task_id="lineage",
        strategy=AggregationStrategy.SEQUENTIAL,
        agent_name=agent_name,
        answer_name=answer_name,
        client=client,
        task_description=TASK_DESCRIPTION,
        answer=answer,
        global_cache=cache,
        global_semaphore=semaphore,
        logger=logger,
        default_model=model,
    )
    lineage = await evaluator.extract("List the generations", Lineage, extraction_name="lineage")
    given = lineage.generations[:3] + [Generation()] * (3 - len(lineage.generations))
    for number, generation in enumerate(given, start=1):
        await verify_generation(evaluator, root, number, generation)
    return evaluator.get_summary()

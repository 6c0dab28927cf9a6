"""Five recipes judged mostly from the answer; later steps count only if earlier ones pass."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from mind2web2.evaluator import AggregationStrategy, Evaluator, VerificationNode

TASK = "Compare five recipes for bread by time, flour and oven, and recommend one."


class Recipe(BaseModel):
    name: str | None = None
    minutes: str | None = None
    urls: list[str] = Field(default_factory=list)


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
        task_id="recipe_notes",
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
    before: list[VerificationNode] = []
    for number in range(1, 6):
        recipe = await evaluator.extract(f"Read out recipe number {number}.", Recipe, "recipe")
        node = evaluator.add_parallel("recipe", f"Recipe {number}")
        evaluator.add_custom_node(recipe.name, "named", "It is named", node)
        whole = evaluator.add_leaf("whole", "Time, flour and oven are given", node, critical=True)
        await evaluator.verify(
            f"The answer gives time, flour and oven for {recipe.name}.", whole, extra_prerequisites=before
        )
        timed = evaluator.add_leaf("timed", "The time is that of the page", node, critical=True)
        if number % 2:
            await evaluator.verify(f"{recipe.name} takes {recipe.minutes}.", timed, sources=recipe.urls)
        else:
            timed.score, timed.status = (1.0, "passed") if recipe.minutes else (0.0, "failed")
        before = [whole] if number == 1 else before
    return evaluator.get_summary()

"""A sequence: who made the film, where that person studied, who taught there, one step after the other."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from mind2web2.evaluator import AggregationStrategy, Evaluator

TASK = "Follow the line from the film to its director, to the school, to the teacher, to the first pupil."
STEPS = ("director", "school", "teacher", "pupil")


class Step(BaseModel):
    name: str | None = None
    relation: str | None = None
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
    root = evaluator.initialize(
        task_id="film_directors",
        strategy=AggregationStrategy.SEQUENTIAL,
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
    for number, role in enumerate(STEPS, start=1):
        found = await evaluator.extract(f"Who is the {role}? Read out number {number}.", Step, role)
        node = evaluator.add_parallel(role, f"The {role} is right", parent=root)
        evaluator.add_custom_node(found.name, f"{role}_named", f"A {role} is named", parent=node, critical=True)
        evaluator.add_custom_node(found.urls, f"{role}_pages", "There are pages", parent=node, critical=False)
        leaf = evaluator.add_leaf(f"{role}_page", "A page says so", parent=node, critical=True)
        await evaluator.verify(
            f"{found.name} is the {role}: {found.relation}.",
            leaf,
            sources=found.urls[:2],
            additional_instruction="Other spellings of the name are the same person.",
        )
        extra = evaluator.add_leaf(f"{role}_years", "The years fit", parent=node)
        await evaluator.verify(f"The years given for {found.name} fit those of the film.", extra)
        evaluator.add_custom_info({"role": role, "urls": len(found.urls)}, info_name=f"{role}_info")
        evaluator.add_custom_node(found.relation, f"{role}_how", "It is told how", parent=node, critical=False)
    return evaluator.get_summary()

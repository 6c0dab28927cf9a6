"""Thirteen advertisements, extracted one by one, then some are checked: the longest of the ten scripts."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from mind2web2 import AggregationStrategy, Evaluator

TASK = "List thirteen printed advertisements of the archive with their year and page."
ADS = 13
CHECKED = 4


class Advertisement(BaseModel):
    title: str | None = None
    year: str | None = None
    url: str | None = None


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
        task_id="ad_archive",
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
    found = [
        await evaluator.extract(f"Read out advertisement number {number}.", Advertisement, f"advertisement_{number}")
        for number in range(1, ADS + 1)
    ]
    order = await evaluator.extract("In which order are they told?", Advertisement, "order")
    evaluator.add_custom_info({"first": order.title}, info_name="order")
    for number, ad in enumerate(found, start=1):
        node = evaluator.add_parallel(f"ad_{number}", f"Advertisement {number}", parent=root)
        evaluator.add_custom_node(ad.year, f"ad_{number}_dated", "It has a year", parent=node, critical=False)
        evaluator.add_existence_node(ad.title and ad.url, f"ad_{number}_given", "It is given with a page", parent=node)
    for number, ad in enumerate(found[:CHECKED], start=1):
        leaf = evaluator.add_leaf(f"ad_{number}_year", "The year is right", evaluator.find_node(f"ad_{number}"))
        await evaluator.verify(f"{ad.title} was printed in {ad.year}.", leaf, sources=ad.url)
        held = evaluator.add_leaf(f"ad_{number}_held", "It is in the archive", evaluator.find_node(f"ad_{number}"))
        await evaluator.verify(f"The archive holds the advertisement {ad.title}.", held, sources=ad.url)
        named = evaluator.find_node(f"ad_{number}")
        evaluator.add_custom_node(ad.title, f"ad_{number}_titled", "It has a title", parent=named, critical=False)
    return evaluator.get_summary()

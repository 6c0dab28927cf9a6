"""Five hotels; all claims about them are verified in one batch."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from mind2web2 import Evaluator

TASK = "Find five hotels near the station, cheapest first."


class Hotel(BaseModel):
    name: str | None = None
    price: str | None = None
    urls: list[str] = Field(default_factory=list)


class Hotels(BaseModel):
    hotels: list[Hotel] = Field(default_factory=list)


class Order(BaseModel):
    names: list[str] = Field(default_factory=list)


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
        task_id="hotel_search",
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
    hotels = (await evaluator.extract("List the hotels.", Hotels, "hotels")).hotels[:5]
    order = await evaluator.extract("In which order does the answer rank them?", Order, "order")
    evaluator.add_custom_node(order.names, "ranked", "They are ranked", critical=False)
    claims: list[tuple[str, Any, Any, str | None]] = []
    for number, hotel in enumerate(hotels, start=1):
        node = evaluator.add_parallel(f"hotel_{number}", f"Hotel {number}")
        near = evaluator.add_leaf(f"hotel_{number}_near", "It is near the station", node, critical=True)
        price = evaluator.add_leaf(f"hotel_{number}_price", "The price is right", node)
        evaluator.add_custom_node(hotel.urls, f"hotel_{number}_pages", "It has pages", node)
        evaluator.add_custom_node(hotel.price, f"hotel_{number}_priced", "It has a price", node, critical=False)
        claims += [
            (f"{hotel.name} is near the station.", hotel.urls[0], near, None),
            (f"A night at {hotel.name} costs {hotel.price}.", hotel.urls[0], price, "Taxes may be left out."),
        ]
    await evaluator.batch_verify(claims)
    return evaluator.get_summary()

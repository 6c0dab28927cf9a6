"""Four graphics cards, checked concurrently with asyncio.gather."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import BaseModel, Field

from mind2web2.eval_toolkit import create_evaluator
from mind2web2.evaluator import Evaluator

TASK = "Find four graphics cards with their price and memory in two shops each."


class Card(BaseModel):
    name: str | None = None
    memory: str | None = None
    shop_urls: list[str] = Field(default_factory=list)


class Cards(BaseModel):
    cards: list[Card] = Field(default_factory=list)


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
    shared = {
        "client": client,
        "task_description": TASK,
        "answer": answer,
        "global_cache": cache,
        "global_semaphore": semaphore,
        "logger": logger,
        "default_model": model,
    }
    evaluator = Evaluator()
    evaluator.initialize(task_id="card_prices", agent_name=agent_name, answer_name=answer_name, **shared)
    reader, _ = create_evaluator(**shared)
    cards = (await reader.simple_extract("List the cards.", Cards)).cards[:4]

    async def check_card(number: int, card: Card) -> None:
        node = evaluator.add_sequential(f"card_{number}", f"Card {number}")
        evaluator.add_custom_node(card.shop_urls, f"card_{number}_shops", "There are shops", node)
        sold = evaluator.add_leaf(f"card_{number}_sold", "A shop sells it", node, critical=True)
        await evaluator.verify(f"{card.name} is sold here.", sold, sources=card.shop_urls[:1])
        price = evaluator.add_leaf(f"card_{number}_price", "The price is right", node, critical=True)
        await evaluator.verify(f"The price of {card.name} is as given.", price, sources=card.shop_urls[:1])
        memory = evaluator.add_leaf(f"card_{number}_memory", "The memory is right", node, critical=True)
        await evaluator.verify(f"{card.name} has {card.memory} of memory.", memory, sources=card.shop_urls[:1])

    await asyncio.gather(*(check_card(number, card) for number, card in enumerate(cards, start=1)))
    return evaluator.get_summary()

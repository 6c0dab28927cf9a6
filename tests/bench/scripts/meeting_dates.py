"""Four meetings with three pages per fact: all pages of a claim are checked concurrently."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import BaseModel, Field

from mind2web2 import Evaluator, VerificationNode

TASK = "For four yearly meetings give date and place of the next one, with the pages."


class Meeting(BaseModel):
    name: str | None = None
    date: str | None = None
    source_urls: list[str] = Field(default_factory=list)


class Meetings(BaseModel):
    meetings: list[Meeting] = Field(default_factory=list)


class Places(BaseModel):
    places: list[str] = Field(default_factory=list)


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
    root: VerificationNode = evaluator.initialize(
        task_id="meeting_dates",
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
    meetings = (await evaluator.extract("List the meetings.", Meetings, "meetings")).meetings[:4]
    places = await evaluator.extract("List the places of the meetings.", Places, "places")
    for number, meeting in enumerate(meetings, start=1):
        node = evaluator.add_parallel(f"meeting_{number}", f"Meeting {number}", parent=root)
        evaluator.add_custom_node(meeting.source_urls, f"meeting_{number}_pages", "There are pages", node)
        evaluator.add_custom_node(meeting.date, f"meeting_{number}_dated", "There is a date", node)
        date = evaluator.add_leaf(f"meeting_{number}_date", "The date is right", node)
        place = evaluator.add_leaf(f"meeting_{number}_place", "The place is right", node)
        await asyncio.gather(
            evaluator.verify(f"{meeting.name} takes place on {meeting.date}.", date, sources=meeting.source_urls),
            evaluator.verify(f"{meeting.name} takes place at {places.places[number - 1]}.", place),
        )
    return evaluator.get_summary()

"""Five papers: title and authors are extracted from the PDF and compared with the answer."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import BaseModel, Field

from mind2web2 import Evaluator

TASK = "Find five papers on the method, with first author and year, and link the PDF of each."


class Paper(BaseModel):
    title: str | None = None
    author: str | None = None
    pdf_urls: list[str] = Field(default_factory=list)


class Papers(BaseModel):
    papers: list[Paper] = Field(default_factory=list)


class Front(BaseModel):
    heading: str | None = None


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
        task_id="paper_authors",
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
    papers = (await evaluator.extract("List the papers.", Papers, "papers")).papers[:5]
    for number, paper in enumerate(papers, start=1):
        node = evaluator.add_parallel(f"paper_{number}", f"Paper {number}")
        evaluator.add_custom_node(paper.pdf_urls, f"paper_{number}_linked", "Its PDF is linked", node)
        front = await evaluator.extract("What is the heading?", Front, f"front_{number}", source=paper.pdf_urls[0])
        title = evaluator.add_leaf(f"paper_{number}_title", "The PDF is that paper", node, critical=True)
        author = evaluator.add_leaf(f"paper_{number}_author", "The first author is right", node)
        await asyncio.gather(
            evaluator.verify(f"'{front.heading}' heads the paper '{paper.title}'.", title),
            evaluator.verify(f"{paper.author} wrote {paper.title} first.", author, sources=paper.pdf_urls[:1]),
        )
    return evaluator.get_summary()

"""A parallel root, claims on several pages, v1-style models, ground truths and infos."""

from pydantic import BaseModel

from mind2web2.evaluator import Evaluator, VerificationNode
from mind2web2.utils.misc import normalize_url_markdown, text_dedent

TASK = text_dedent(
    """
    Find two museums that open on Mondays
    and say what a ticket costs.
    """
)
PRICES = {"Louvre": 22, "Orsay": 16}


class Museum(BaseModel):
    name: str = ""
    price: str | None = None
    urls: list[str] | None = None


class Museums(BaseModel):
    museums: list[Museum] = []
    opening_note: str | None = None


async def check(evaluator: Evaluator, parent: VerificationNode, museum: Museum) -> None:
    node = evaluator.add_parallel("museum", f"The museum {museum.name}", parent)
    evaluator.add_existence_node(
        result=museum.name in PRICES, id="known", desc="A museum we know of", parent=node, critical=True
    )
    price = evaluator.add_leaf("price", "The price", node)
    await evaluator.verify(
        f"A ticket of the {museum.name} costs {museum.price}",
        price,
        museum.urls,
        additional_instruction="Prices for adults; ignore the currency",
    )
    monday = evaluator.add_leaf("monday", "Open on Mondays", node)
    await evaluator.verify(
        f"The {museum.name} is open on Mondays", monday, sources=museum.urls, use_screenshot=False, num_trials=1
    )


async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini", **kwargs):
    evaluator = Evaluator()
    root = evaluator.initialize(
        "museums",
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
    found = await evaluator.extract("Which museums?", Museums, additional_instruction="At most two")
    for museum in found.museums[:2]:
        museum.urls = [normalize_url_markdown(url) for url in museum.urls or []]
        await check(evaluator, root, museum)
    evaluator.add_ground_truth(PRICES)
    evaluator.add_ground_truth({"day": "Monday"}, gt_type="weekday")
    evaluator.add_custom_info({"n": len(found.museums)}, info_type="counts", info_name="museums_found")
    evaluator.add_custom_info(found.dict(), "as_extracted")
    return evaluator.get_summary()

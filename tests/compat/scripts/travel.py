"""Tools, the client and the semaphore used by the script itself, and helpers of the package."""

from pydantic import BaseModel

from mind2web2 import Evaluator, LLMClient, PDFParser, strip_extension
from mind2web2.api_tools import tool_arxiv, tool_googlemap, tool_pdf
from mind2web2.llm_client.base_client import LLMClient as BaseClient
from mind2web2.utils.logging_setup import create_sub_logger

assert LLMClient is BaseClient


class Trip(BaseModel):
    start: str = ""
    end: str = ""
    paper: str = ""


class Ranking(BaseModel):
    best: str = ""


async def reachable(tool: "tool_googlemap.GoogleMapsTool | Maps", trip: Trip, limit: int) -> bool:
    distance = await tool.calculate_distance(address1=trip.start, address2=trip.end, mode="walking")
    return isinstance(distance, int) and distance <= limit


class Maps:
    """Stands in for the Maps tool: the script was written so that one can."""

    async def calculate_distance(self, address1, address2, mode="driving"):
        return {"Louvre": 1200, "Orsay": 9000}.get(address2, "Distance not found")


async def evaluate_answer(
    client: LLMClient, answer: str, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"
):
    e = Evaluator()
    e.initialize(
        "travel", agent_name=agent_name, answer_name=answer_name, client=client, answer=answer, global_cache=cache,
        global_semaphore=semaphore, logger=create_sub_logger(logger, strip_extension(answer_name)), default_model=model,
        verify_model=model,
    )  # fmt: skip
    trip = await e.extract("The trip?", Trip, "trip")
    async with semaphore:
        near = await reachable(Maps(), trip, 2000)
    e.add_custom_node(near, "near", "The walk is short", critical=False)
    is_paper = tool_arxiv.ArxivTool.is_arxiv_pdf_link(trip.paper)
    e.add_custom_node(is_paper, "paper", "A paper is cited", critical=False)
    identifier = tool_arxiv.ArxivTool.get_arxiv_id_from_pdf_link(trip.paper)
    e.add_custom_info({"id": identifier, "pdf": tool_pdf.is_pdf_by_suffix(trip.paper)}, "paper")
    assert isinstance(e.extractor.pdf_parser, PDFParser)
    ranking = await client.async_response(
        model=model, messages=[{"role": "user", "content": "Which stop is best?"}], response_format=Ranking
    )
    best = e.add_leaf("best", "The best stop is named")
    if not await e.verify(f"The best stop is {ranking.best}", best):
        best.desc = "The best stop is not named"
    e.add_custom_info({"score_of_best": best.score})
    return e.get_summary()

"""Tools of task scripts. The service executes the parts that need a key, a browser or another program."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from judges.isolation.fork_server_pool import ForkServerPool
from tests.compat.test_tools import KEY, geocode, matrix
from tests.compat.web import running_web
from tests.fakes.judge_processes import open_process_pool, run_public_script, script
from tests.standin.documents import pdf_with_a_layer_switched_off

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process_pool() -> AsyncIterator[ForkServerPool]:
    async with open_process_pool() as opened:
        yield opened


def custom_info(result: dict[str, Any]) -> dict[str, Any]:
    """Return the custom info that the script added."""
    return next(info["custom"] for info in result["eval_breakdown"][0]["info"] if "custom" in info)


async def test_service_sends_maps_requests_with_its_key(
    process_pool: ForkServerPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GOOGLE_MAPS_API_KEY", KEY)
    with running_web({"/maps/api/geocode/json": geocode, "/maps/api/distancematrix/json": matrix}) as web:
        body = f"""
            tool = tool_googlemap.GoogleMapsTool(base_url={web.origin!r}, timeout_s=240)
            noted = {{"city": await tool.get_city_name("Eiffel Tower"),
                     "metres": await tool.calculate_distance("Eiffel Tower", "Louvre"),
                     "places": len(tool.client.geocode("Eiffel Tower"))}}
            for attempt in ("refused", "session"):
                try:
                    if attempt == "refused":
                        await tool.get_city_name("refused")
                    else:
                        tool.client.session_of_its_own()
                except Exception as error:
                    noted[attempt] = f"{{type(error).__name__}} {{error}}"
            noted["key"] = {KEY!r} in str(vars(tool.client))
            evaluator.add_custom_info(noted)
        """
        above = "from mind2web2.api_tools import tool_googlemap"
        noted = custom_info(await run_public_script(script(tmp_path, body, above=above), process_pool))
        assert all(request.query["key"] == KEY for request in web.requests)
    assert (noted["city"], noted["metres"], noted["places"], noted["key"]) == ("Paris", 1200, 1, False)
    assert noted["refused"].startswith("ApiError REQUEST_DENIED (this key may not)")
    assert "not an allowed method of the Maps API" in noted["session"]


async def test_service_parses_pdfs(process_pool: ForkServerPool, tmp_path: Path):
    data = base64.b64encode(pdf_with_a_layer_switched_off("A lamp on paper.", "unseen")).decode()
    body = f"""
        import base64
        pictures, text = await PDFParser().extract(base64.b64decode({data!r}))
        nothing = await PDFParser().extract(b"no pdf")
        evaluator.add_custom_info({{"text": text, "pictures": len(pictures), "nothing": nothing[1]}})
    """
    noted = custom_info(
        await run_public_script(script(tmp_path, body, above="from mind2web2 import PDFParser"), process_pool)
    )
    assert "A lamp on paper." in noted["text"]
    assert noted["pictures"] == 1
    assert noted["nothing"] == "PDF extraction failed: the data is not a PDF"

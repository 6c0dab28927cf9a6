"""``assay admin doctor --model``: results of a model probe, over a real socket."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.maintenance.doctor import State, probe_model
from app.settings import Settings
from tests.fakes.settings import settings_for_tests
from tests.standin.llm import StandInLLM

FILLED = {"word": "lighthouse", "holds": True}


def settings(server: StandInLLM, folder: Path) -> Settings:
    return settings_for_tests(data_dir=folder, openai_base_url=server.base_url)


@pytest.mark.parametrize(
    ("dialect", "form", "images"), [("openai", "json_schema strict", True), ("deepseek", "json_object", False)]
)
async def test_probe_detects_and_stores_the_request_format(tmp_path: Path, dialect: str, form: str, images: bool):
    async with StandInLLM(dialect=dialect, extractions={"Probe": FILLED}) as server:
        check = await probe_model(settings(server, tmp_path), "openai/llama-9")
    assert check.state is State.OK, check
    assert (check.facts["schema_mode"], check.facts["images"]) == (form, images)
    assert form in (tmp_path / "dialects.json").read_text("utf-8")


async def test_unreachable_server_fails_the_check(tmp_path: Path):
    async with StandInLLM() as server:
        gone = settings(server, tmp_path).model_copy(update={"openai_base_url": f"{server.base_url}/nowhere"})
        server.api_key = "another"
        check = await probe_model(gone, "openai/llama-9")
    assert (check.state, bool(check.remedy)) == (State.FAILED, True)

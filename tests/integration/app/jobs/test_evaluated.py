from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from answers.submission import Answer
from app.clock import SortableIdGenerator, SystemClock
from app.engine.result_folder import EVALUATED, keep_for_service
from app.jobs.evaluated import EvaluatedResults
from app.storage.captures import PostgresCaptureIndex
from app.storage.database import Database
from app.storage.results import get_result
from cache.capture_index import FolderIndex
from judges.result import AnswerFolder
from judges.text_pages import evidence_of
from tests.fakes.evaluating import result_json
from tests.fakes.services import Rig

pytestmark = pytest.mark.postgres
URL = "https://example.org/tower"


def evaluated(database: Database, folder: Path) -> EvaluatedResults:
    return EvaluatedResults(database, folder, ids=SortableIdGenerator(SystemClock()))


async def test_results_are_stored_once_with_their_pages(rig: Rig, database: Database, tmp_path: Path):
    [job_id] = await rig.submit("It is 88 m high.")
    answer = Answer(name="answer_1.md", text="It is 88 m high.")
    capture = evidence_of(URL, "The tower is 88 m high.").capture
    await (await FolderIndex.open(tmp_path / "captures")).record(capture)
    result = result_json(await rig.job(job_id), answer, "res_1")
    result["pages"] = [{"url": URL, "page_id": capture.id, "outcome": "ok"}]
    place = AnswerFolder(out=tmp_path / "out", agent="otter", task_id="tower", answer_name=answer.name)
    keep_for_service(tmp_path, place, answer, "lexical", result)
    [file] = (tmp_path / EVALUATED).iterdir()
    again = tmp_path / "again.json"
    again.write_bytes(file.read_bytes())

    await evaluated(database, tmp_path).store_all()
    again.rename(file)
    await evaluated(database, tmp_path).store_all()

    assert not list((tmp_path / EVALUATED).iterdir())
    async with database.begin() as connection:
        stored = await get_result(connection, "res_1", owner="local")
    assert stored is not None and json.loads(stored.body)["id"] == result["id"]
    job = await rig.job(stored.job_id)
    assert (job.agent, job.task_id, job.status, job.result_id) == ("otter", "tower", "succeeded", "res_1")
    assert await PostgresCaptureIndex(database).get(capture.id) == capture


async def test_file_that_cannot_be_stored_is_set_aside_and_the_next_one_is_stored(
    rig: Rig, database: Database, tmp_path: Path
):
    [job_id] = await rig.submit("It is 88 m high.")
    answer = Answer(name="answer_1.md", text="It is 88 m high.")
    place = AnswerFolder(out=tmp_path / "out", agent="otter", task_id="tower", answer_name=answer.name)

    job = await rig.job(job_id)

    def keep(id: str, text: str = answer.text, page_id: str = "", **changes: Any) -> None:
        result = result_json(job, answer, id) | {"pages": [{"url": URL, "page_id": page_id or None}]} | changes
        keep_for_service(tmp_path, place, replace(answer, text=text), "lexical", result)

    keep("nul", text="a\0b", answer_sha256="f" * 64)
    keep("score", score={"value": None, "low": {}, "high": 1})
    keep("final", final_score=10**400)
    (tmp_path / "captures").mkdir()
    (tmp_path / "captures" / "page_damaged.json").write_text("{")
    for name, text in (("a", "{"), ("b", '{"result": 1}'), ("deep", "[" * 100_000)):
        (tmp_path / EVALUATED / f"{name}.json").write_text(text)
    (tmp_path / EVALUATED / "folder.json").mkdir()
    keep("zz_good", page_id="page_damaged")
    await evaluated(database, tmp_path).store_all()

    left = sorted(path.name for path in (tmp_path / EVALUATED).iterdir())
    rejected = ["a", "b", "deep", "final", "nul", "score"]
    assert left == sorted([*(f"{name}.rejected" for name in rejected), "folder.json"])
    async with database.begin() as connection:
        assert await get_result(connection, "zz_good", owner="local") is not None

from __future__ import annotations

import json
from pathlib import Path

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

    assert await evaluated(database, tmp_path).store_all() == 1
    again.rename(file)
    assert await evaluated(database, tmp_path).store_all() == 1

    assert not list((tmp_path / EVALUATED).iterdir())
    async with database.begin() as connection:
        stored = await get_result(connection, "res_1", owner="local")
    assert stored is not None and json.loads(stored.body)["id"] == result["id"]
    job = await rig.job(stored.job_id)
    assert (job.agent, job.task_id, job.status, job.result_id) == ("otter", "tower", "succeeded", "res_1")
    assert await PostgresCaptureIndex(database).get(capture.id) == capture


async def test_file_that_is_no_result_is_set_aside(database: Database, tmp_path: Path):
    (tmp_path / EVALUATED).mkdir()
    for name, text in (("a.json", "{"), ("b.json", '{"result": 1}')):
        (tmp_path / EVALUATED / name).write_text(text)
    await evaluated(database, tmp_path).store_all()
    assert sorted(path.name for path in (tmp_path / EVALUATED).iterdir()) == ["a.rejected", "b.rejected"]

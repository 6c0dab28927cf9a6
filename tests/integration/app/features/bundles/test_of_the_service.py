"""Bundles of results in the database of a service, with overrides and retention."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from answers.submission import Answer
from app.features.bundles.archive import BundleRefused, Manifest
from app.features.bundles.exporting import export_bundle, from_database
from app.features.bundles.verification import verify
from app.maintenance.retention import prune
from app.progress import ProgressCallback
from app.storage.overrides import Override, insert_override
from app.storage.records import Job
from cache.blobs import BlobArea
from cache.errors import BlobMissing
from judges.errors import JudgeBug
from tests.fakes.bundled import ANSWER, InMemoryJudging, read_member, rebuilt
from tests.fakes.llm import RuleLLM
from tests.fakes.services import Rig

pytestmark = pytest.mark.postgres


class Service:
    """Service that judges answers with scripted pages and models."""

    def __init__(self, rig: Rig, folder: Path) -> None:
        self.rig = rig
        self.world = InMemoryJudging(folder, RuleLLM())

    async def evaluate(self, job: Job, answer: Answer, *, result_id: str, progress: ProgressCallback) -> dict[str, Any]:
        if "broken" in answer.text:
            raise JudgeBug("it broke")
        return await self.world.evaluate(answer, result_id=result_id)

    async def judged(self, *texts: str) -> list[Job]:
        async with self.rig.running_worker(self.evaluate):
            ids = await self.rig.submit(*texts, agent="otter", task_id="museum")
            return [await self.rig.wait_for_job(job_id) for job_id in ids]

    async def bundle(self, out: Path) -> Manifest:
        evaluated = await from_database(self.rig.database, "otter", [])
        return await export_bundle(self.world.stores, evaluated, out)


@pytest.fixture
def service(rig: Rig, tmp_path: Path) -> Service:
    return Service(rig, tmp_path)


async def test_bundle_contains_newest_result_of_each_answer(service: Service, tmp_path: Path):
    await service.judged(ANSWER, f"Well. {ANSWER}")
    jobs = await service.judged(ANSWER, f"Better. {ANSWER}", "broken")
    bundle = tmp_path / "bundle.zip"
    report = await service.bundle(bundle)
    assert [result.result_id for result in report.results] == [jobs[0].result_id, jobs[1].result_id]
    assert (verify(bundle).first_problem, verify(bundle).is_complete) == (None, True)
    index = json.loads(read_member(bundle, "manifest.json"))
    assert index["without_result"] == [{"task_id": "museum", "answer_name": "answer_3.md", "error_code": "JUDGE_BUG"}]
    result = json.loads(read_member(bundle, f"results/{jobs[1].result_id}.json"))
    assert read_member(bundle, f"answers/{result['answer_sha256']}.md").decode().startswith("Better.")


def make_override(
    result_id: str, number: int, leaf: str, outcome: str | None, withdraws: str | None = None
) -> Override:
    return Override(
        id=f"ovr_{number}",
        result_id=result_id,
        leaf=leaf,
        outcome=outcome,
        verdict="passed",
        model="gpt-6-luna",
        reason="I looked at the page. " * 40,
        by="Ada",
        key_owner="local",
        withdraws=withdraws,
        created_at=datetime(2026, 3, 4, tzinfo=UTC),
    )


async def test_bundle_contains_overrides_and_recomputes_both_scores(service: Service, tmp_path: Path):
    [job] = await service.judged(ANSWER)
    assert job.result_id is not None
    await service.bundle(tmp_path / "before.zip")
    overrides = [make_override(job.result_id, 1, "lamp", "failed"), make_override(job.result_id, 2, "said", "failed")]
    overrides.append(make_override(job.result_id, 3, "said", None, withdraws="ovr_2"))
    async with service.rig.database.begin() as connection:
        for override in overrides:
            await insert_override(connection, override)
    bundle = tmp_path / "after.zip"
    await service.bundle(bundle)
    stored = json.loads(read_member(bundle, f"overrides/{job.result_id}.json"))
    assert [(override["leaf"], override["outcome"], override["in_force"]) for override in stored["overrides"]] == [
        ("lamp", "failed", True),
        ("said", "failed", False),
        ("said", None, False),
    ]
    [checked] = verify(bundle).results
    assert checked.differences == ()
    assert checked.with_overrides == stored["with_overrides"]
    without, with_them = checked.figures["final_score"], stored["with_overrides"]["final_score"]
    assert with_them < without == json.loads(read_member(bundle, f"results/{job.result_id}.json"))["final_score"]
    assert verify(tmp_path / "before.zip").results[0].with_overrides is None

    path = f"overrides/{job.result_id}.json"
    forgeries = {
        "with_overrides": stored | {"with_overrides": {**stored["with_overrides"], "final_score": 1.0}},
        path: stored | {"overrides": stored["overrides"][:2]},
    }
    for where, forgery in forgeries.items():
        other = rebuilt(bundle, tmp_path / "other.zip", {path: json.dumps(forgery).encode()})
        assert where in (verify(other).first_problem or "")
    without_overrides = rebuilt(bundle, tmp_path / "silent.zip", {path: None})
    assert path in (verify(without_overrides).first_problem or "")
    result = f"results/{job.result_id}.json"
    unusual = json.loads(read_member(bundle, result))
    unusual["eval_breakdown"][0]["verification_tree"]["children"][0]["requires"] = 5
    [unrecomputable] = verify(rebuilt(bundle, tmp_path / "odd.zip", {result: json.dumps(unusual).encode()})).results
    assert "cannot be recomputed" in str(unrecomputable.differences[0])
    invalid = rebuilt(bundle, tmp_path / "nonsense.zip", {path: b'{"overrides": [1]}'})
    with pytest.raises(BundleRefused, match="is invalid"):
        verify(invalid)


async def test_prune_removes_call_log_with_its_result(service: Service, tmp_path: Path):
    await service.judged(ANSWER)
    await service.bundle(tmp_path / "bundle.zip")
    [judged] = (await from_database(service.rig.database, "otter", [])).judged
    sha256 = judged.result["calls"]["sha256"]
    blobs, now = service.world.blobs, datetime.now(UTC)
    await prune(service.rig.database, blobs, before=now - timedelta(days=1), now=now, dry_run=False)
    assert await blobs.get_from_area(BlobArea.CALLS, sha256)
    later = now + timedelta(days=2)
    await prune(service.rig.database, blobs, before=later, now=later, dry_run=True)
    assert await blobs.get_from_area(BlobArea.CALLS, sha256)
    await prune(service.rig.database, blobs, before=later, now=later, dry_run=False)
    with pytest.raises(BlobMissing):
        await blobs.get_from_area(BlobArea.CALLS, sha256)
    assert await blobs.get_from_area(BlobArea.SCRIPTS, judged.result["script"]["sha256"])

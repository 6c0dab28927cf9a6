"""Answers judged by the real pipeline with fixed pages and models, and bundles of the results."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from answers.submission import Answer
from app.engine import pipeline
from app.engine.limits import Limits
from app.engine.model_clients import ModelClients
from app.engine.runtime import Runtime
from app.features.bundles.agent_results import AgentResults, SourceResult
from app.features.bundles.bag import BagWriter
from app.features.bundles.crate import bag_info, crate_metadata, crate_preview, evidence_date
from app.features.bundles.exporting import EvidenceStores, ExportReport, export_bundle
from app.features.bundles.layout import CRATE, INDEX, PREVIEW, Index, capture_path, json_bytes
from app.observability.redaction import Redactor
from cache.blobs import BlobStore
from cache.capture import CaptureOutcome, Capturer, Observation, PageKind
from cache.capture_index import MemoryIndex, capture_from_json
from cache.pages import PageCache
from judges.isolation.fork_server_pool import ForkServerPool
from judges.llm.client import LLMClient
from judges.loader import JudgeCatalogue, load_judge
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.result_files import write_json
from tests.fakes.pages import jpeg
from tests.fakes.settings import settings_for_tests

AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
MUSEUM = "https://museum.example/hours"
LAMPS = "https://lamps.example/catalogue?colour=green"
GONE = "https://gone.example/"
BLOCK_BUILDER = BlockBuilder(b"a secret of the tests")
JPEG = jpeg()
FILLING = "The rooms on the second floor show lamps of many makers and times. " * 60
PAGES: Mapping[str, str] = {
    MUSEUM: f"The museum opens at nine. {FILLING}The museum closes at six.",
    LAMPS: "Every lamp in this catalogue is green.",
}
ANSWER = f"It opens at nine, see [the museum]({MUSEUM}), and the lamp is green: {LAMPS}. Also {GONE}."
JUDGE = f"""
from judges.registry import judge

@judge(task="museum", description="When does the museum open?")
async def museum(ctx):
    hours = ctx.parallel("hours", "The hours")
    hours.verify("opens", "The museum opens at nine", sources=["{MUSEUM}"], critical=True)
    hours.verify("closes", "The museum closes at six", sources=["{MUSEUM}"])
    ctx.verify("lamp", "The lamp is green", sources=["{LAMPS}"], weight=2)
    ctx.verify("gone", "The shop is open", sources=["{GONE}"])
    ctx.verify("said", "The answer says when the museum opens")
"""


class PagesWithBodies:
    """Capturer of fixed pages with all their bodies; every other page is gone."""

    def __init__(self, pages: Mapping[str, str] = PAGES) -> None:
        self._pages = pages

    async def capture(self, url: str) -> Observation:
        text = self._pages.get(url)
        known = text is not None
        return Observation(
            url=url,
            outcome=CaptureOutcome.OK if known else CaptureOutcome.HTTP_ERROR,
            captured_at=AT,
            duration_s=0.1,
            backend="fixed",
            final_url=url,
            http_status=200 if known else 404,
            kind=PageKind.WEB,
            title="A page" if known else "",
            text=text or "",
            html=f"<title>A page</title><p>{text}</p>".encode() if known else None,
            screenshots=(JPEG + url.encode(),) if known else (),
            links=(("more", f"{url}#more"),) if known else (),
            headers={"content-type": "text/html", "server": "fixed"},
            gone=not known,
        )

    async def aclose(self) -> None: ...


class InMemoryJudging:
    """Judges answers in memory, as the service does with its database, and exports the results as bundles."""

    def __init__(
        self, folder: Path, llm: LLMClient, *, capturer: Capturer | None = None, secrets: tuple[str, ...] = ()
    ) -> None:
        self.folder = folder
        self.llm = llm
        self.blobs = BlobStore.open("memory://")
        self.index = MemoryIndex()
        self.settings = settings_for_tests(
            data_dir=folder / "data", model="openai/gpt-6-luna", openai_api_key="sk-of-tests"
        )
        self.redactor = Redactor(secrets)
        self.pages = PageCache(capturer or PagesWithBodies(), self.blobs, self.index)
        self.results: list[SourceResult] = []
        self.owner: str | None = None
        """Owner of the answers."""
        self.process_pool: ForkServerPool | None = None
        """Fork servers for judge files; None: judges run in this process."""

    @property
    def stores(self) -> EvidenceStores:
        return EvidenceStores(blobs=self.blobs, captures=self.index, redactor=self.redactor)

    @property
    def agent_results(self) -> AgentResults:
        return AgentResults(agent="otter", judged=tuple(self.results))

    async def judge(
        self, source: str = JUDGE, *, task: str = "museum", answer: str = ANSWER, name: str = "answer_1.md"
    ) -> dict[str, Any]:
        """Judge one answer with a judge file of this source."""
        given = Answer(name=name, text=answer)
        result = await self.evaluate(given, source=source, task=task, result_id=f"res_{len(self.results):026d}")
        file = self.folder / "result.json"
        write_json(file, result)
        self.results.append(
            SourceResult(
                id=result["id"], task_id=task, answer_name=name, body=file.read_bytes(), answer=answer.encode("utf-8")
            )
        )
        return result

    async def evaluate(
        self, answer: Answer, *, result_id: str, source: str = JUDGE, task: str = "museum"
    ) -> dict[str, Any]:
        """Return the result of an answer."""
        path = self.folder / f"{task}.py"
        path.write_text(source, "utf-8")
        judge = load_judge(path)
        runtime = self._runtime(JudgeCatalogue(judges={task: judge}))
        try:
            return await pipeline.evaluate(
                runtime,
                judge=judge,
                agent="otter",
                answer=answer,
                owner=self.owner,
                result_id=result_id,
                replace_client=lambda _: self.llm,
            )
        finally:
            await runtime.models.aclose()

    async def bundle(self, name: str = "bundle.zip", **options: bool) -> tuple[Path, ExportReport]:
        out = self.folder / name
        return out, await export_bundle(self.stores, self.agent_results, out, **options)

    def _runtime(self, catalogue: JudgeCatalogue) -> Runtime:
        limits = Limits.from_settings(self.settings)
        return Runtime(
            settings=self.settings,
            limits=limits,
            catalogue=catalogue,
            pages=self.pages,
            blobs=self.blobs,
            index=self.index,
            models=ModelClients(self.settings, limits, None, lists_models=False),
            block_builder=BLOCK_BUILDER,
            page_preparer=PagePreparer(BLOCK_BUILDER),
            redactor=self.redactor,
            process_pool=self.process_pool,
        )


def copy_with_changes(bundle: Path, to: Path, changes: Mapping[str, bytes | None]) -> Path:
    """Return a copy of a bundle with some payload files changed or removed, as a foreign program might do it."""
    with zipfile.ZipFile(bundle) as before, zipfile.ZipFile(to, "w") as after:
        for info in before.infolist():
            data = changes.get(info.filename.partition("/data/")[2], before.read(info))
            if data is not None:
                after.writestr(info, data)
    return to


def read_member(bundle: Path, path: str) -> bytes:
    """Return one file of the payload."""
    with zipfile.ZipFile(bundle) as archive:
        return archive.read(f"assay-otter/data/{path}")


def rebuilt(bundle: Path, to: Path, changes: Mapping[str, bytes | None]) -> Path:
    """Return a copy of a bundle with changed, added or removed payload files and everything else made consistent.

    Preview, RO-Crate and ``bag-info.txt`` (unless they are among the changes), manifests and zip headers are generated
    as the product does, so only the changed contents themselves can reveal the change.
    """
    with zipfile.ZipFile(bundle) as archive:
        files = {
            name.partition("/data/")[2]: archive.read(name) for name in archive.namelist() if "/data/" in name
        } | dict(changes)
    payload = {path: data for path, data in files.items() if data is not None}
    index = Index.model_validate_json(payload[INDEX])
    captures = {
        page: capture_from_json(json.loads(payload[capture_path(page)]))
        for result in index.results
        for page in result.pages
        if capture_path(page) in payload
    }
    at = evidence_date(captures.values())
    described = {path: len(data) for path, data in payload.items() if path not in (PREVIEW, CRATE)}
    payload[CRATE] = json_bytes(crate_metadata(index, described, captures, at))
    payload[PREVIEW] = crate_preview(index, at)
    payload |= {path: data for path, data in changes.items() if data is not None}
    with to.open("w+b") as file:
        bag = BagWriter(file, f"assay-{index.agent}")
        for path, data in payload.items():
            bag.add(path, [data])
        bag.finish(bag_info(index.agent, at))
    return to

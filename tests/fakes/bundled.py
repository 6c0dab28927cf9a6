"""Answers judged by the real pipeline with fixed pages and models, and bundles of the results."""

from __future__ import annotations

import asyncio
import json
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from answers.submission import Answer
from app.engine import pipeline
from app.engine.model_clients import Limits, ModelClients
from app.engine.runtime import Runtime
from app.features.bundles.archive import MANIFEST, Manifest, new_bundle, open_bundle
from app.features.bundles.exporting import AgentResults, EvidenceStores, SourceResult, export_bundle
from app.features.bundles.replay import replay
from app.features.bundles.verification import verify
from app.observability.logs import Redactor
from cache.blobs import BlobStore
from cache.capture import Capture, CaptureOutcome, Capturer, EvidencePolicy, Observation, PageKind
from cache.capture_index import MemoryIndex
from cache.pages import PageCache
from judges.isolation.fork_server_pool import ForkServerPool
from judges.llm.call_recording import ParsedCallLog, read_calls
from judges.llm.client import LLMClient
from judges.loader import JudgeCatalogue, load_judge
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.result import write_json
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
        self.supplied: Sequence[Capture] = ()
        """Pages that the agent supplied, used where a page is no evidence."""
        self.process_pool: ForkServerPool | None = None
        """Fork servers for task files; None: judges run in this process."""

    @property
    def stores(self) -> EvidenceStores:
        return EvidenceStores(blobs=self.blobs, captures=self.index, redactor=self.redactor)

    @property
    def agent_results(self) -> AgentResults:
        return AgentResults(agent="otter", judged=tuple(self.results))

    async def judge(
        self, source: str = JUDGE, *, task: str = "museum", answer: str = ANSWER, name: str = "answer_1.md"
    ) -> dict[str, Any]:
        """Judge one answer with a task file of this source."""
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
                pipeline.JudgingCase(
                    judge=judge,
                    agent="otter",
                    answer=answer,
                    owner=self.owner,
                    result_id=result_id,
                    supplied=self.supplied,
                    evidence_policy=EvidencePolicy.FALLBACK if self.supplied else None,
                ),
                wrap_client=lambda _: self.llm,
            )
        finally:
            await runtime.models.aclose()

    async def bundle(self, name: str = "bundle.zip", **options: bool) -> tuple[Path, Manifest]:
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


def payload(bundle: Path) -> dict[str, bytes]:
    """Return the files of a bundle without its manifest."""
    with open_bundle(bundle) as reader:
        return {path: reader.read(path) for path in reader.files}


def read_member(bundle: Path, path: str) -> bytes:
    """Return one file of a bundle."""
    with zipfile.ZipFile(bundle) as archive:
        return archive.read(path)


def rebuilt(bundle: Path, to: Path, changes: Mapping[str, bytes | None], **manifest: Any) -> Path:
    """Return a copy of a bundle with changed, added or removed files, and with a new manifest that fits them.

    ``manifest`` are fields of the manifest to change.
    """
    files = payload(bundle) | dict(changes)
    listed = json.loads(read_member(bundle, MANIFEST)) | manifest
    with new_bundle(to) as writer:
        for path, data in files.items():
            if data is not None:
                writer.add(path, data)
        writer.finish(listed)
    return to


def call_log(bundle: Path, result_id: str = "res_00000000000000000000000000") -> ParsedCallLog:
    """Return the call log of a result of a bundle."""
    sha256 = json.loads(read_member(bundle, f"results/{result_id}.json"))["calls"]["sha256"]
    return read_calls(read_member(bundle, f"call-logs/{sha256}.log"))


async def check_replay(bundle: Path, world: InMemoryJudging) -> None:
    """Check that a bundle is valid, and that judging its answers again gives equal results."""
    verified = await asyncio.to_thread(verify, bundle)
    assert verified.first_problem is None, [each for result in verified.results for each in result.differences]
    replayed = await replay(bundle, world.settings)
    assert replayed.first_problem is None
    assert replayed.is_complete, [result.unchecked for result in replayed.results]

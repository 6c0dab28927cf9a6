"""What judging an answer needs, chosen from the settings. The only file that names concrete backends.

Usable without a database (``assay evaluate``) and with one (the service and its workers).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import judges.tasks
from app.clock import Clock, Ids, SortableIds, SystemClock
from app.errors import UnknownTask, WrongSettings
from app.limits import Limits
from app.redaction import Redactor
from app.settings import Settings
from app.storage.captures import PostgresIndex
from app.storage.database import Database
from cache.blobs import BlobStore
from cache.pages import PageCache
from cache.store import CaptureIndex, FolderIndex
from judges.blocks import Separator
from judges.errors import JudgeNotLoadable
from judges.llm.circuit import Circuit
from judges.llm.client import LLMClient
from judges.llm.providers import Access, make_client, parse_model
from judges.llm.response_cache import ReplyStore
from judges.loader import JudgeCatalogue, load_judges
from judges.page_view import PagePreparer
from judges.registry import Judge


class ModelClients:
    """Model clients by provider: made when first asked for, closed together."""

    def __init__(self, settings: Settings, limits: Limits, replies: ReplyStore | None) -> None:
        self._settings = settings
        self._limits = limits
        self._replies = replies
        self._clients: dict[str, LLMClient] = {}

    def client(self, model: str) -> tuple[LLMClient, str]:
        """The client for ``provider/model`` and the model's bare name.

        Raises:
            ModelNotConfigured: no such provider, or its key is missing.
        """
        name = parse_model(model)
        if name.provider not in self._clients:
            # A client serves every model of its provider: the request names the model.
            self._clients[name.provider], _ = make_client(
                model,
                semaphore=self._limits.llm,
                access=_access(self._settings),
                store=self._replies,
                circuit=Circuit(),
            )
        return self._clients[name.provider], name.model

    async def aclose(self) -> None:
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Everything the pipeline works with."""

    settings: Settings
    limits: Limits
    catalogue: JudgeCatalogue
    pages: PageCache
    blobs: BlobStore
    index: CaptureIndex
    models: ModelClients
    separator: Separator
    prepared: PagePreparer
    redactor: Redactor
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=lambda: SortableIds(SystemClock()))

    def knows_task(self, task_id: str) -> bool:
        """Whether there is a judge file for this task, sound or broken."""
        return task_id in self.catalogue.judges or task_id in self.catalogue.broken

    def judge(self, task_id: str) -> Judge:
        """The judge of a task.

        Raises:
            UnknownTask: there is none.
            JudgeNotLoadable: its file is broken.
        """
        found = self.catalogue.judges.get(task_id)
        if found is not None:
            return found
        broken = self.catalogue.broken.get(task_id)
        if broken is None:
            raise UnknownTask(f"there is no judge for task {task_id!r}")
        raise JudgeNotLoadable(broken.partition("\n")[0], traceback=broken)


def _access(settings: Settings) -> Access:
    return Access()


@asynccontextmanager
async def open_runtime(settings: Settings, database: Database | None = None) -> AsyncIterator[Runtime]:
    yield None

"""Runtime without browser, model or network, for tests of the service around it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from app.engine.judge_files import LiveCatalogue
from app.engine.model_clients import Limits, ModelClients, folder_reply_cache
from app.engine.runtime import Runtime, open_blobs
from app.observability.logs import Redactor
from app.settings import Settings
from app.storage.captures import PostgresCaptureIndex, PostgresCaptureLocks
from app.storage.database import Database
from app.storage.shared_state import open_shared_state
from cache.blobs import BlobStore
from cache.capture import CaptureOutcome, Observation, PageKind
from cache.pages import PageCache
from judges.llm.cached import ReplyCache
from judges.llm.retry import RetryPolicy
from judges.loader import load_judges
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from tests.fakes.pages import jpeg

FAST_RETRIES = RetryPolicy(first_wait_s=0.001, max_wait_s=0.01)
"""Five attempts with almost no wait between them."""


class PagesByUrl:
    """Capturer of fixed pages; every other page is gone. ``captured`` lists the URLs in order.

    A page can also be the outcome of its capture, for example a login wall.
    """

    def __init__(self, pages: Mapping[str, str | CaptureOutcome]) -> None:
        self._pages = pages
        self.captured: list[str] = []

    async def capture(self, url: str) -> Observation:
        text = self._pages.get(url)
        self.captured.append(url)
        if isinstance(text, CaptureOutcome):
            return Observation(
                url=url, outcome=text, captured_at=datetime.now(UTC), duration_s=0.0, backend="fixed", final_url=url
            )
        return Observation(
            url=url,
            outcome=CaptureOutcome.HTTP_ERROR if text is None else CaptureOutcome.OK,
            captured_at=datetime.now(UTC),
            duration_s=0.0,
            backend="fixed",
            final_url=url,
            http_status=404 if text is None else 200,
            kind=PageKind.WEB,
            title="A page",
            text=text or "",
            screenshots=() if text is None else (jpeg(),),
            gone=text is None,
        )

    async def aclose(self) -> None:
        pass


def scripted_runtime(
    judges: Path,
    pages: Mapping[str, str | CaptureOutcome] | None = None,
    *,
    data_folder: Path | None = None,
    locks_captures: bool = False,
) -> Callable[[Settings, Database], AbstractAsyncContextManager[Runtime]]:
    """Return an ``OpenRuntime`` with the task files of one folder and fixed pages.

    ``data_folder`` is the folder for page bodies and model replies that survive a restart; None: nothing survives.
    ``locks_captures``: workers on one database capture each page once, as in the service.
    """

    @asynccontextmanager
    async def opened(settings: Settings, database: Database) -> AsyncIterator[Runtime]:
        blobs = open_blobs(settings) if settings.blobs else BlobStore.open(_folder(data_folder))
        index = PostgresCaptureIndex(database)
        redactor = Redactor(settings.secrets)
        async with AsyncExitStack() as stack:
            sharing = await stack.enter_async_context(
                open_shared_state(
                    database,
                    secret=b"a secret of the tests",
                    redact=redactor.redact,
                    reply_bytes=settings.shared_reply_cache_bytes,
                )
            )
            replies: ReplyCache | None = sharing.replies
            if replies is None and data_folder is not None:
                replies = folder_reply_cache(_with_data_folder(settings, data_folder))
            total = settings.max_llm_total
            of_all = None if total is None else sharing.slots.semaphore("llm", total)
            limits = Limits.from_settings(settings, shared_llm=of_all)
            models = ModelClients(
                settings,
                limits,
                replies,
                policy=FAST_RETRIES,
                provider_status=sharing.provider_status,
                secret=sharing.secret,
            )
            stack.push_async_callback(models.aclose)
            locks = PostgresCaptureLocks(database) if locks_captures else None
            cache = PageCache(PagesByUrl({} if pages is None else pages), blobs, index, locks=locks)
            stack.push_async_callback(cache.aclose)
            block_builder = BlockBuilder(sharing.secret)
            loaded = load_judges([judges])
            own = settings.model_copy(update={"judges": (judges,)})
            yield Runtime(
                settings=settings,
                limits=limits,
                catalogue=LiveCatalogue(settings=own, judges=loaded.judges, broken=loaded.broken, in_process=True),
                pages=cache,
                blobs=blobs,
                index=index,
                models=models,
                block_builder=block_builder,
                page_preparer=PagePreparer(block_builder),
                redactor=redactor,
                shared_replies=sharing.replies,
            )

    return opened


def _folder(data_folder: Path | None) -> str:
    return "memory://" if data_folder is None else (data_folder / "blobs").as_uri()


def _with_data_folder(settings: Settings, data_folder: Path) -> Settings:
    return settings.model_copy(update={"data_dir": data_folder})

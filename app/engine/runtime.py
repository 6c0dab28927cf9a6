"""Runtime: the components of the pipeline, built from the settings.

This is the only module that selects concrete backends. It works without a database (``assay evaluate``) and with one
(the service and its workers).
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, TypeAlias

from app.clock import Clock, IdGenerator, SortableIdGenerator, SystemClock
from app.engine.judge_files import LiveCatalogue
from app.engine.model_clients import Limits, ModelClients, folder_reply_cache
from app.errors import InvalidSettings, UnknownTask
from app.observability.logs import Redactor
from app.settings import Settings
from app.storage.data_folder import prepare_data_folder
from cache.backends.browser_search import DOWNLOAD_FOLDERS, INSTALL_BROWSER, find_browser
from cache.backends.http import HttpCapturer
from cache.backends.patchright import BrowserCapturer
from cache.backends.router import PROBE_BYTES, PROBE_S, RoutedCapturer, SiblingProbe
from cache.blobs import BlobStore
from cache.capture import Capturer, Observation
from cache.capture_index import CaptureIndex, CombinedIndex, FolderIndex
from cache.confinement.privileges import DEFAULT_UID
from cache.egress.proxy import EgressProxy, parse_host_port
from cache.errors import BrowserUnavailable
from cache.pacing import HostPacing, PacedCapturer, ProcessHostPacing, SlowHosts
from cache.pages import Archive, PageCache
from cache.sources.wayback import Wayback
from judges.errors import JudgeNotLoadable
from judges.isolation.fork_server_pool import ForkServerPool
from judges.isolation.process_limits import ScriptLimits
from judges.llm.providers import parse_judge
from judges.loader import JudgeCatalogue
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.registry import Judge
from mind2web2.host import PRELOADED

if TYPE_CHECKING:
    # Only the service has a database, and its libraries take a third of the start-up time of a command.
    from app.storage.captures import PostgresCaptureLocks
    from app.storage.database import Database
    from app.storage.reply_cache import DatabaseReplyCache
    from app.storage.shared_state import SharedState

_SECRET_BYTES = 32
_PROBES_AT_ONCE = 4
HostSlots: TypeAlias = Callable[[str], AbstractAsyncContextManager[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Components of the pipeline."""

    settings: Settings
    limits: Limits
    catalogue: JudgeCatalogue
    pages: PageCache
    blobs: BlobStore
    index: CaptureIndex
    models: ModelClients
    block_builder: BlockBuilder
    page_preparer: PagePreparer
    redactor: Redactor
    process_pool: ForkServerPool | None = None
    """Fork server pool for task files. None: they run in this process."""
    shared_replies: DatabaseReplyCache | None = None
    """Reply cache of workers on several machines. None: a single machine, which has its cache in the data folder."""
    sandboxed: Callable[[], bool | None] = field(default=lambda: None)
    """Whether the browsers of this process run in their sandbox. None if no browser runs."""
    allow_egress: Callable[[str], AbstractContextManager[None]] = lambda entry: nullcontext()
    """Allows captures of one more ``host:port`` during a block."""
    clock: Clock = field(default_factory=SystemClock)
    ids: IdGenerator = field(default_factory=lambda: SortableIdGenerator(SystemClock()))

    async def reload_judges(self, tasks: Iterable[str] | None = None) -> None:
        """Load the task files of ``tasks`` (None: of all tasks) again that were added, changed or removed."""
        if isinstance(self.catalogue, LiveCatalogue):
            await self.catalogue.refresh(tasks)

    def has_task(self, task_id: str) -> bool:
        """Return whether there is a task file for this task, even one that does not load."""
        return task_id in self.catalogue.judges or task_id in self.catalogue.broken

    def judge(self, task_id: str) -> Judge:
        """Return the judge of a task.

        Raises:
            UnknownTask: There is no task file for the task.
            JudgeNotLoadable: The task file does not load.
        """
        loaded = self.catalogue.judges.get(task_id)
        if loaded is not None:
            return loaded
        broken = self.catalogue.broken.get(task_id)
        if broken is None:
            raise UnknownTask(f"no task file exists for {task_id!r}")
        raise JudgeNotLoadable(broken.partition("\n")[0], traceback=broken)


@asynccontextmanager
async def open_runtime(
    settings: Settings,
    database: Database | None = None,
    *,
    record_in_folder: bool = False,
    catalogue: JudgeCatalogue | None = None,
    process_pool: ForkServerPool | None = None,
    in_process: bool = False,
) -> AsyncIterator[Runtime]:
    """Open a runtime and close it at the end of the block.

    If there is a ``database``, captures are recorded in it. ``record_in_folder`` records them also in the data folder,
    for commands that work without a server. ``catalogue`` contains judges that are already loaded. The caller closes
    ``process_pool`` (default: a new one). ``in_process``: task files run in this process, which is confined itself.

    Raises:
        InvalidSettings: A folder or store of the settings cannot be used.
        ModelNotConfigured: The model of the settings names no known provider, or an invalid jury.
    """
    parse_judge(settings.model)
    ids = SortableIdGenerator(clock := SystemClock())
    async with AsyncExitStack() as stack:
        secret, blobs = await asyncio.to_thread(_open_folders, settings)
        sharing = None
        if database is not None:
            sharing = await stack.enter_async_context(_shared_state(database, settings, secret))
            secret = sharing.secret
        limits = _limits(settings, sharing)
        index = await _index(settings, database, record_in_folder=record_in_folder)
        proxy = await stack.enter_async_context(EgressProxy(settings.egress_allow))
        pacing, locks = _capture_coordination(database)
        capturer = await asyncio.to_thread(_capturer, settings, limits, proxy, pacing, sharing)
        pages = PageCache(
            capturer,
            blobs,
            index,
            clock=clock.now,
            new_id=lambda: ids.new("page"),
            max_age_s=settings.page_max_age_s,
            locks=locks,
            archive=_archive(settings, proxy, pacing, clock),
            slow_hosts=SlowHosts(pages_per_host=settings.max_pages_per_host),
            renderer=capturer if isinstance(capturer, RoutedCapturer) else None,
        )
        stack.push_async_callback(pages.aclose)
        provider_status, shared = (None, None) if sharing is None else (sharing.provider_status, sharing.replies)
        models = ModelClients(
            settings, limits, shared or folder_reply_cache(settings), provider_status=provider_status, secret=secret
        )
        stack.push_async_callback(models.aclose)
        block_builder = BlockBuilder(secret)
        if process_pool is None and not in_process:
            process_pool = await stack.enter_async_context(aclosing(create_fork_server_pool(settings)))
        yield Runtime(
            settings=settings,
            limits=limits,
            catalogue=catalogue or await LiveCatalogue.load(settings, process_pool, in_process=in_process),
            pages=pages,
            blobs=blobs,
            index=index,
            models=models,
            block_builder=block_builder,
            page_preparer=PagePreparer(block_builder),
            redactor=Redactor(settings.secrets),
            process_pool=process_pool,
            shared_replies=shared,
            sandboxed=lambda: getattr(capturer, "sandboxed", None),
            allow_egress=proxy.allowing,
            clock=clock,
            ids=ids,
        )


def _open_folders(settings: Settings) -> tuple[bytes, BlobStore]:
    """Return the installation secret and open the blob store. Blocks."""
    try:
        return _installation_secret(settings.data_dir), open_blobs(settings)
    except (OSError, ValueError) as error:
        raise InvalidSettings(
            f"ASSAY_DATA_DIR {settings.data_dir} or ASSAY_BLOBS cannot be used: {error}. Set ASSAY_DATA_DIR, or "
            "--cache if the command has it, to a folder that can be written"
        ) from error


def _limits(settings: Settings, sharing: SharedState | None) -> Limits:
    """Return the limits of this process, combined with the model request limit that all workers share, if any."""
    total = settings.max_llm_total
    shared_llm = None if sharing is None or total is None else sharing.slots.semaphore("llm", total)
    return Limits.from_settings(settings, shared_llm=shared_llm)


def create_fork_server_pool(settings: Settings, *, terminal: bool = False) -> ForkServerPool:
    """Create the fork server pool for task files. With ``terminal``, they keep the terminal of this process."""
    limits = ScriptLimits(memory_bytes=settings.script_memory_bytes)
    return ForkServerPool(PRELOADED, limits=limits, uid=DEFAULT_UID, terminal=terminal)


class NoBrowser:
    """``Capturer`` for a machine without a browser. Every capture raises ``BrowserUnavailable``."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def capture(self, url: str) -> Observation:
        raise BrowserUnavailable(self._reason)

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""


def _shared_state(database: Database, settings: Settings, secret: bytes) -> AbstractAsyncContextManager[SharedState]:
    from app.storage.shared_state import open_shared_state

    redact = Redactor(settings.secrets).redact
    return open_shared_state(database, secret=secret, redact=redact, reply_bytes=settings.shared_reply_cache_bytes)


def _capture_coordination(database: Database | None) -> tuple[HostPacing, PostgresCaptureLocks | None]:
    """Return the pacing of requests per host, and the locks that make workers capture each page once."""
    if database is None:
        return ProcessHostPacing(), None
    from app.storage.captures import PostgresCaptureLocks, PostgresHostPacing

    return PostgresHostPacing(database), PostgresCaptureLocks(database)


async def _index(settings: Settings, database: Database | None, *, record_in_folder: bool) -> CaptureIndex:
    folder = settings.data_dir / "captures"
    if database is None:
        return await FolderIndex.open(folder)
    from app.storage.captures import PostgresCaptureIndex

    shared = PostgresCaptureIndex(database)
    return CombinedIndex(shared, await FolderIndex.open(folder)) if record_in_folder else shared


def _archive(settings: Settings, proxy: EgressProxy, pace: HostPacing, clock: Clock) -> Archive | None:
    """Return the client of the web archive; None if the settings disable it."""
    if not settings.wayback:
        return None
    fetch = HttpCapturer(proxy, semaphore=asyncio.Semaphore(settings.max_pages), contact=settings.contact)
    if settings.wayback == "on":
        return Wayback(fetch, pace, now=clock.now)
    return Wayback(fetch, pace, now=clock.now, availability=settings.wayback, archive=settings.wayback)


def _shared_host_slots(settings: Settings, sharing: SharedState | None) -> HostSlots | None:
    """Return the limit of concurrent captures per host that all workers share; None without a shared database."""
    if sharing is None or settings.database_url is None:
        return None
    slots, total = sharing.slots, settings.max_pages_per_host
    return lambda host: slots.semaphore(f"host {host}", total, linger_s=0.0)


def _capturer(
    settings: Settings, limits: Limits, proxy: EgressProxy, pace: HostPacing, sharing: SharedState | None
) -> Capturer:
    """Create the capturer: the headless shell first if it is installed, full Chromium as the fallback."""
    browser = find_browser(settings.browser, downloads=[Path.home() / folder for folder in DOWNLOAD_FOLDERS])
    programs = [program for program in (browser.shell, browser.full) if program is not None]
    if not programs:
        searched = ", ".join(map(str, browser.searched_paths))
        return NoBrowser(f"{browser.problem or f'no Chromium or Chrome in {searched}'}. {INSTALL_BROWSER}")
    exempt_hosts = frozenset(parse_host_port(entry) for entry in settings.egress_allow)
    browsers = [
        BrowserCapturer(
            program,
            proxy,
            semaphore=nullcontext(),  # the routed capturer limits the captures of all browsers
            allow_unsandboxed=settings.browser_unsandboxed,
            contact=settings.contact,
            uid=DEFAULT_UID + 1,
        )
        for program in programs
    ]
    # Probes have their own semaphore. Each one belongs to a page that has a slot.
    probe_slots = asyncio.Semaphore(_PROBES_AT_ONCE)
    probe = HttpCapturer(
        proxy, semaphore=probe_slots, deadline_s=PROBE_S, max_bytes=PROBE_BYTES, contact=settings.contact
    )
    capturers: tuple[Capturer, ...] = (probe, *browsers)
    paced_probe, *paced = (
        PacedCapturer(each, pace, interval_s=settings.host_gap_s, is_exempt=exempt_hosts.__contains__)
        for each in capturers
    )
    return RoutedCapturer(
        *paced,
        sibling_probe=SiblingProbe(paced_probe),
        limit=limits.pages,
        renderer=browsers[0],
        global_slot=_shared_host_slots(settings, sharing),
    )


def open_blobs(settings: Settings) -> BlobStore:
    """Open the store of page bodies. Blocks.

    Raises:
        ValueError: The store cannot be used.
    """
    if not settings.blobs:
        return BlobStore.open((settings.data_dir.absolute() / "blobs").as_uri())
    keys = {
        "access_key_id": settings.aws_access_key_id,
        "secret_access_key": settings.aws_secret_access_key,
        "session_token": settings.aws_session_token,
    }
    options = {"region": settings.aws_region, "endpoint": settings.aws_endpoint_url}
    given = {name: secret.get_secret_value() for name, secret in keys.items() if secret is not None}
    return BlobStore.open(settings.blobs, s3=given | {name: value for name, value in options.items() if value})


def _installation_secret(data_dir: Path) -> bytes:
    """Return the random secret of this data folder. It is created once and survives restarts."""
    path = data_dir / "secret"
    prepare_data_folder(data_dir)
    # Write a temporary file and link it, so that no process reads an incomplete secret.
    with suppress(FileExistsError), NamedTemporaryFile(dir=data_dir, prefix=".secret-") as fresh:
        fresh.write(secrets.token_bytes(_SECRET_BYTES))
        fresh.flush()
        os.fsync(fresh.fileno())
        path.hardlink_to(fresh.name)
    return path.read_bytes()

"""What judging an answer needs, chosen from the settings. The only file that names concrete backends.

Usable without a database (``assay evaluate``) and with one (the service and its workers).
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile

from pydantic import SecretStr

import judges.tasks
from app.clock import Clock, Ids, SortableIds, SystemClock
from app.errors import UnknownTask, WrongSettings
from app.limits import Limits
from app.redaction import Redactor
from app.script_check import import_problems
from app.settings import Settings
from app.storage.captures import PostgresIndex
from app.storage.database import Database
from cache.backends.patchright import BrowserCapturer
from cache.backends.router import RoutedCapturer
from cache.blobs import BlobStore
from cache.browser_search import find_browser
from cache.capture import Capturer, Observation
from cache.egress import EgressGuard
from cache.errors import BrowserUnavailable
from cache.pages import PageCache
from cache.store import CaptureIndex, FolderIndex
from judges.blocks import Separator
from judges.errors import JudgeNotLoadable
from judges.llm.budget import Budget
from judges.llm.circuit import Circuit, CircuitState, not_sent
from judges.llm.client import LLMClient
from judges.llm.providers import Access, make_client, parse_model
from judges.llm.refusals import refuses_everything
from judges.llm.response_cache import ReplyStore
from judges.llm.retry import RetryPolicy
from judges.loader import JudgeCatalogue, load_judges
from judges.page_view import PagePreparer
from judges.registry import Judge, JudgeKind

_SECRET_BYTES = 32


class ModelClients:
    """Model clients by provider: made when first asked for, closed together."""

    def __init__(
        self, settings: Settings, limits: Limits, replies: ReplyStore | None, *, policy: RetryPolicy | None = None
    ) -> None:
        self._settings = settings
        self._policy = policy
        self._limits = limits
        self._replies = replies
        self._budget = None if settings.budget_usd is None else Budget(settings.budget_usd)
        self._clients: dict[str, LLMClient] = {}
        self._circuits: dict[str, Circuit] = {}

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
                policy=self._policy,
                circuit=self._circuit(name.provider),
                budget=self._budget,
            )
        return self._clients[name.provider], name.model

    def check(self, model: str | None) -> None:
        """Refuse to begin what ``model`` (None: the settings' own) would not be asked for now.

        Raises:
            LLMRejected: an earlier request was refused for its key, account or access.
        """
        name = parse_model(model or self._settings.model)
        circuit = self._circuit(name.provider)
        refusal = circuit.refusal(name.model)
        if refusal is None or not refuses_everything(refusal):
            return
        if circuit.state(name.model) is CircuitState.REFUSED:
            raise not_sent(refusal) from refusal

    def state(self, model: str | None) -> CircuitState:
        """What is to be expected of the next request to ``model``; None: the settings' own."""
        name = parse_model(model or self._settings.model)
        return self._circuit(name.provider).state(name.model)

    def let_one_through(self, model: str | None) -> None:
        """Somebody says that the key was mended: one request may find out."""
        name = parse_model(model or self._settings.model)
        self._circuit(name.provider).let_one_through(name.model)

    def _circuit(self, provider: str) -> Circuit:
        return self._circuits.setdefault(provider, Circuit())

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


@asynccontextmanager
async def open_runtime(settings: Settings, database: Database | None = None) -> AsyncIterator[Runtime]:
    """The runtime for as long as the block lasts; with a ``database`` captures are recorded there.

    Raises:
        WrongSettings: a folder or store of the settings cannot be used.
        ModelNotConfigured: the settings' model names no provider.
    """
    parse_model(settings.model)
    clock = SystemClock()
    ids = SortableIds(clock)
    limits = Limits.from_settings(settings)
    async with AsyncExitStack() as stack:
        try:
            secret = await asyncio.to_thread(_installation_secret, settings.data_dir)
            blobs = await asyncio.to_thread(_open_blobs, settings)
        except (OSError, ValueError) as error:
            raise WrongSettings(f"{settings.data_dir} or ASSAY_BLOBS cannot be used: {error}") from error
        index = PostgresIndex(database) if database else await FolderIndex.open(settings.data_dir / "captures")
        guard = await stack.enter_async_context(EgressGuard(settings.egress_allow))
        capturer = await asyncio.to_thread(_capturer, settings, limits, guard)
        pages = PageCache(capturer, blobs, index, clock=clock.now, new_id=lambda: ids.new("page"))
        stack.push_async_callback(pages.aclose)
        models = ModelClients(settings, limits, reply_store(settings))
        stack.push_async_callback(models.aclose)
        separator = Separator(secret)
        yield Runtime(
            settings=settings,
            limits=limits,
            catalogue=await asyncio.to_thread(load_catalogue, settings),
            pages=pages,
            blobs=blobs,
            index=index,
            models=models,
            separator=separator,
            prepared=PagePreparer(separator),
            redactor=Redactor(settings.secrets),
            clock=clock,
            ids=ids,
        )


def reply_store(settings: Settings) -> ReplyStore | None:
    """Where the models' replies are kept; None where they are not."""
    if not settings.reply_cache_bytes:
        return None
    return ReplyStore(reply_folder(settings.data_dir), max_bytes=settings.reply_cache_bytes)


def reply_folder(data_dir: Path) -> Path:
    """The models' replies in a data folder."""
    return data_dir / "replies"


def load_catalogue(settings: Settings) -> JudgeCatalogue:
    """Every judge file of the settings' folders, then the shipped ones. Blocks.

    Public scripts are imported too, in a child process: one that cannot be is listed as broken.
    """
    shipped = Path(judges.tasks.__file__).parent
    found = load_judges([*settings.judges, shipped])
    paths = {judge.path: task_id for task_id, judge in found.judges.items() if judge.kind is JudgeKind.MIND2WEB2}
    problems = import_problems([path for path in paths if path is not None])
    broken = {paths[path]: f"{path}: {problem}".rstrip() for path, problem in problems.items()}
    sound = {task_id: judge for task_id, judge in found.judges.items() if task_id not in broken}
    return JudgeCatalogue(judges=sound, broken=found.broken | broken)


class NoBrowser:
    """The ``Capturer`` of a machine without a browser: says so, once a page is asked for."""

    def __init__(self, why: str) -> None:
        self._why = why

    async def capture(self, url: str) -> Observation:
        raise BrowserUnavailable(self._why)

    async def aclose(self) -> None:
        """Nothing was opened."""


def _capturer(settings: Settings, limits: Limits, guard: EgressGuard) -> Capturer:
    """The small headless browser first, where there is one, and the whole browser for a second look."""
    found = find_browser(settings.browser, downloads=(Path.home() / ".cache" / "ms-playwright",))
    programs = [program for program in (found.shell, found.full) if program is not None]
    if not programs:
        looked = ", ".join(map(str, found.looked_in))
        return NoBrowser(found.problem or f"no Chromium in {looked}: install one, or set ASSAY_BROWSER")
    browsers = [
        BrowserCapturer(program, guard, semaphore=limits.pages, allow_unsandboxed=settings.browser_unsandboxed)
        for program in programs
    ]
    return RoutedCapturer(*browsers, pages_per_host=limits.max_pages_per_host)


def _open_blobs(settings: Settings) -> BlobStore:
    if not settings.blobs:
        return BlobStore.open((settings.data_dir.absolute() / "blobs").as_uri())
    keys = {
        "access_key_id": settings.aws_access_key_id,
        "secret_access_key": settings.aws_secret_access_key,
        "session_token": settings.aws_session_token,
    }
    plain = {"region": settings.aws_region, "endpoint": settings.aws_endpoint_url}
    given = {name: secret.get_secret_value() for name, secret in keys.items() if secret is not None}
    return BlobStore.open(settings.blobs, s3=given | {name: value for name, value in plain.items() if value})


def _installation_secret(data_dir: Path) -> bytes:
    """A random secret that is made once and kept: what it marks stays the same over restarts."""
    place = data_dir / "secret"
    data_dir.mkdir(parents=True, exist_ok=True)
    # Written aside and linked into place, so that no process ever reads half of it.
    with suppress(FileExistsError), NamedTemporaryFile(dir=data_dir, prefix=".secret-") as fresh:
        fresh.write(secrets.token_bytes(_SECRET_BYTES))
        fresh.flush()
        os.fsync(fresh.fileno())
        place.hardlink_to(fresh.name)
    return place.read_bytes()


def _access(settings: Settings) -> Access:
    def plain(secret: SecretStr | None) -> str | None:
        return None if secret is None else secret.get_secret_value()

    optional = {"azure_api_version": settings.azure_api_version, "aws_region": settings.aws_region}
    return Access(
        openai_api_key=plain(settings.openai_api_key),
        openai_base_url=settings.openai_base_url,
        azure_api_key=plain(settings.azure_api_key),
        azure_endpoint=settings.azure_endpoint,
        aws_access_key=plain(settings.aws_access_key or settings.aws_access_key_id),
        aws_secret_key=plain(settings.aws_secret_key or settings.aws_secret_access_key),
        aws_session_token=plain(settings.aws_session_token),
        **{name: value for name, value in optional.items() if value is not None},
    )

"""Checks of ``assay admin doctor``. Each failed check says how to fix it. The checks leave no files behind."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from app.engine.judge_files import load_catalogue
from app.engine.judge_trials import lint_judges
from app.engine.model_clients import Limits, ModelClients
from app.engine.runtime import open_blobs, open_runtime
from app.errors import AppError
from app.maintenance.retention import missing_bodies
from app.observability.logs import Redactor, configure_logging
from app.settings import Settings
from app.storage.database import Database, has_database, open_database
from app.storage.embedded import EmbeddedPostgres
from app.storage.keys import load_keys
from cache.backends.browser_process import own_network_problem
from cache.backends.browser_search import INSTALL_BROWSER
from cache.confinement.landlock import LANDLOCK_TCP, landlock_version
from cache.confinement.privileges import DEFAULT_UID, user_change_problem
from cache.errors import CacheError
from judges.errors import EXTRAS, JudgeError, LLMError, installed
from judges.llm.models import suggestions
from judges.llm.providers import LEXICAL, ModelName, parse_judge, probe

WARN_BELOW_BYTES = 2 * 1024**3
FAIL_BELOW_BYTES = 200 * 1024**2
SCRIPTED_TEXT = "written by a script"
_PAGE = f"""<!doctype html><title>doctor</title><h1>A page to try the browser on</h1><p id=late></p>
<script>setTimeout(() => late.textContent = "{SCRIPTED_TEXT.upper()}".toLowerCase(), 300)</script>"""


class State(StrEnum):
    """Outcome of a check."""

    OK = "ok"
    WARNING = "warning"
    """The service works, but the operator should know about this."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check. ``remedy`` says how to fix a problem; it is empty if there is none."""

    name: str
    state: State
    detail: str
    remedy: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The detail in machine-readable form, for ``--json``."""


async def run_checks(
    settings: Settings, model: str | None = None, *, on_check: Callable[[Check], None] = lambda check: None
) -> list[Check]:
    """Run all checks, as many as possible at the same time. Discard log output.

    Args:
        settings: Settings of the service.
        model: Model to probe at the end, which costs two small requests.
        on_check: Called with each result, in the order of the returned list.
    """
    configure_logging(Redactor(settings.secrets), stream=StringIO())
    async with asyncio.TaskGroup() as group:
        browser = group.create_task(check_browser(settings))
        stored = group.create_task(check_storage(settings))
        provider = group.create_task(check_model(settings))
        judges = group.create_task(check_judges(settings))
        checks: list[Check] = []

        def add(check: Check) -> None:
            checks.append(check)
            on_check(check)

        add(check_program())
        add(await browser)
        *storage, access = await stored
        for check in storage:
            add(check)
        add(check_keys(settings))
        add(await provider)
        add(await judges)
        add(await asyncio.to_thread(check_confinement, settings))
        add(check_disk(settings.data_dir))
        add(access)
    if model is not None:
        add(await probe_model(settings, model))
    return checks


def check_program() -> Check:
    detail = f"assay {version('assay')} on Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    missing = sorted({extra for extra in EXTRAS.values() if not installed(extra)})
    absent = f"; without the extras {', '.join(missing)} (`make setup-all`)" if missing else ""
    return Check("program", State.OK, detail + absent)


async def check_browser(settings: Settings) -> Check:
    """Capture a local test page whose text is written by a script, to prove that the browser works."""
    began = time.monotonic()
    try:
        with TemporaryDirectory(prefix="assay-doctor-") as folder:
            async with _page_server() as address:
                trial = settings.model_copy(
                    update={
                        "data_dir": Path(folder),
                        "blobs": "",
                        "judges": (),
                        "model": LEXICAL,
                        "egress_allow": settings.egress_allow | {address},
                    }
                )
                async with open_runtime(trial) as runtime:
                    capture = await runtime.pages.get(f"http://{address}/")
                    text = (await runtime.pages.evidence(capture)).text if capture.is_evidence else ""
                    sandboxed = runtime.sandboxed()
    except (AppError, CacheError) as error:
        return Check("browser", State.FAILED, str(error), f"{INSTALL_BROWSER}.")
    seconds = time.monotonic() - began
    program = f"{capture.backend.removeprefix('browser:')} {capture.versions.get('browser', '')}".strip()
    if SCRIPTED_TEXT not in text:
        detail = f"{program} did not render a simple page: {capture.outcome.value} {capture.detail}".rstrip()
        return Check("browser", State.FAILED, detail, "Set ASSAY_BROWSER to another browser.")
    if sandboxed is False:
        return Check(
            "browser",
            State.WARNING,
            f"{program} runs WITHOUT its sandbox, as ASSAY_BROWSER_UNSANDBOXED allows",
            "Allow unprivileged user namespaces before you capture untrusted pages.",
        )
    return Check("browser", State.OK, f"{program}, sandboxed; a page took {seconds:.1f} s")


@asynccontextmanager
async def _page_server() -> AsyncIterator[str]:
    """Yield ``host:port`` of a loopback server that returns the test page for every request."""
    body = _PAGE.encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def check_storage(settings: Settings) -> list[Check]:
    """Open the database once, as the service would. If the embedded one does not exist yet, try a temporary one.

    The checks are of the database, of the evidence that an existing database refers to, and of the API keys.
    """
    began = time.monotonic()
    evidence: list[Check] = []
    stored_keys = 0
    try:
        if has_database(settings):
            async with open_database(settings) as database:
                await database.ping()
                opened = time.monotonic()
                evidence = [await check_evidence(settings, database)]
                stored_keys = sum(record.usable(datetime.now(UTC)) for record in await load_keys(database))
            location = "of ASSAY_DATABASE_URL" if settings.database_url is not None else f"in {settings.data_dir}"
        else:
            with TemporaryDirectory(prefix="assay-doctor-") as folder:
                server = EmbeddedPostgres(Path(folder), durable=False)
                async with server.running():  # has connected once
                    opened = time.monotonic()
            location = f"will be created in {settings.data_dir} (a temporary one works)"
    except AppError as error:
        failed = Check(
            "database",
            State.FAILED,
            str(error),
            "Check ASSAY_DATABASE_URL, or unset it and make sure that ASSAY_DATA_DIR is writable.",
        )
        uncounted = Check("access", State.WARNING, f"Cannot count the stored keys: {error}")
        return [failed, uncounted]
    detail = f"PostgreSQL {location}, {opened - began:.1f} s to open"
    database_check = Check("database", State.OK, detail)
    return [database_check, *evidence, _access(settings, stored_keys)]


async def check_evidence(settings: Settings, database: Database) -> Check:
    """Check that every page body that the database refers to is stored. Some can be missing after a restore."""
    try:
        referenced, missing = await missing_bodies(database, await asyncio.to_thread(open_blobs, settings))
    except (AppError, CacheError, ValueError) as error:
        remedy = "Check ASSAY_BLOBS and the credentials of the store."
        return Check("evidence", State.FAILED, str(error), remedy)
    if missing:
        return Check(
            "evidence",
            State.WARNING,
            f"{missing} of {referenced} stored page bodies are missing",
            "Restore them from a backup. Until then, claims that need them are not judged.",
        )
    return Check("evidence", State.OK, f"{referenced} stored page bodies")


def _access(settings: Settings, stored_keys: int) -> Check:
    """Report the number of valid API keys. No key is shown."""
    if not stored_keys and not settings.api_keys:
        detail = "no API keys: the service accepts requests from this machine only"
    else:
        detail = f"valid keys: {stored_keys} stored, {len(settings.api_keys)} of ASSAY_API_KEYS"
    return Check("access", State.OK, detail)


def check_keys(settings: Settings) -> Check:
    """Check that the credentials of the configured model are set. Send no request, because that costs money."""
    try:
        ModelClients(settings, Limits.from_settings(settings), None).client(settings.model)
    except JudgeError as error:
        remedy = "Set the key, or choose another model: ASSAY_MODEL=lexical needs no key."
        return Check("keys", State.FAILED, str(error), remedy)
    providers = set(parse_judge(settings.model).providers.values())
    needs = "needs no key" if providers == {LEXICAL} else "has a key (not tested)"
    return Check("keys", State.OK, f"model {settings.model} {needs}")


async def check_model(settings: Settings) -> Check:
    """Check that the provider lists the configured model and has announced no shutdown. Model lists are free.

    For a jury, return the first check of its members that is not OK, otherwise that of the first member.
    """
    try:
        members = parse_judge(settings.model).members
    except JudgeError as error:
        return Check("model", State.FAILED, str(error), "Set ASSAY_MODEL to provider/model.")
    checks = [await _check_model(settings.model_copy(update={"model": str(member)}), member) for member in members]
    return next((check for check in checks if check.state is not State.OK), checks[0])


async def _check_model(settings: Settings, name: ModelName) -> Check:
    if name.provider == LEXICAL:
        detail = "lexical: built in, compares words, needs no provider and costs nothing"
        return Check("model", State.OK, detail)
    models = ModelClients(settings, Limits.from_settings(settings), None)
    try:
        warnings = await models.warnings(None)
        known = models.model_list(name.provider)
        listed = await known.listed() if known is not None else ()
    except JudgeError as error:
        return Check("model", State.FAILED, str(error), "Set ASSAY_MODEL to provider/model.")
    finally:
        await models.aclose()
    if warnings:
        is_retired = "was shut down" in warnings[0]
        detail, _, remedy = warnings[0].partition(": ")
        state = State.FAILED if is_retired else State.WARNING
        return Check("model", state, detail, f"{remedy[:1].upper()}{remedy[1:]}.")
    if listed and name.model not in {one.name for one in listed}:
        close = suggestions(name.model, listed, settings.prices)
        hint = f"Did you mean {' or '.join(close)}? " if close else ""
        remedy = f"{hint}Set ASSAY_MODEL to a model that the provider lists."
        detail = f"{name} is not among the {len(listed)} models that the provider lists"
        return Check("model", State.WARNING, detail, remedy)
    price = "price unknown (set ASSAY_PRICES)" if settings.prices.of(name.model) is None else "price known"
    is_listed = "listed by its provider" if listed else "its provider lists no models"
    return Check("model", State.OK, f"{name}: {is_listed}, {price}")


async def probe_model(settings: Settings, model: str) -> Check:
    """Probe which request format the server of ``model`` accepts, and store it. Costs two small requests."""
    models = ModelClients(settings, Limits.from_settings(settings), None)
    try:
        client, name = await models.open_client(model)
        reply = await probe(client, name)
    except LLMError as error:
        remedy = "Check the key, OPENAI_BASE_URL and the model's name."
        return Check("model server", State.FAILED, f"{model}: {error}", remedy)
    except JudgeError as error:
        return Check("model server", State.FAILED, f"{model}: {error}")
    finally:
        await models.aclose()
    images = "accepts images" if reply.images else "accepts no images: pages are judged on their text"
    detail = f"{model} uses {reply.request_format}; {images}. Stored in {settings.data_dir / 'dialects.json'}"
    if not reply.right:
        remedy = "Its replies have the right format but wrong content: try a more capable model."
        return Check("model server", State.WARNING, detail, remedy, facts=reply.facts)
    return Check("model server", State.OK, detail, facts=reply.facts)


async def check_judges(settings: Settings) -> Check:
    catalogue = await load_catalogue(settings)
    if catalogue.broken:
        reasons = [problem.partition("\n")[0] for _, problem in sorted(catalogue.broken.items())]
        return Check(
            "judges",
            State.FAILED,
            f"{len(catalogue.judges)} tasks, but these files do not load: {', '.join(sorted(catalogue.broken))}",
            "; ".join([*reasons, "`assay tasks show ID` shows all problems"]),
        )
    lint = await lint_judges(catalogue.judges.values())
    lines = [f"{task}: {line}" for task, report in sorted(lint.items()) for line in report.lines()]
    if lines:
        return Check(
            "judges",
            State.WARNING,
            f"{len(catalogue.judges)} tasks; {lines[0]}" + (f" ({len(lines) - 1} more)" if lines[1:] else ""),
            "List all findings: assay tasks.",
            facts={"lint": {task: report.findings for task, report in sorted(lint.items())}},
        )
    return Check("judges", State.OK, f"{len(catalogue.judges)} tasks, no lint findings")


def check_confinement(settings: Settings) -> Check:
    """Say what separates task files and the browser from the service (docs/decisions/0006-confined-task-files.md)."""
    landlock, problem = landlock_version(), user_change_problem(DEFAULT_UID)
    separated = f"Landlock {landlock}" if landlock else ""
    if not problem:
        separated = ", ".join(part for part in (f"user {DEFAULT_UID}", separated) if part)
    if not separated:
        return Check(
            "isolation",
            State.WARNING,
            f"task files and the browser can read the files of the service: no Landlock, and {problem}",
            "Use Linux 5.13 or newer.",
        )
    detail = f"task files and the browser: {separated}; "
    if shared := own_network_problem(None if problem else DEFAULT_UID + 1):
        bounds = "only to temporary ports" if landlock >= LANDLOCK_TCP else "anywhere"
        return Check(
            "isolation",
            State.WARNING,
            f"{detail}the browser shares the network of the service ({shared}): a browser that a page has taken "
            f"over can connect {bounds}, and send UDP",
            "Allow user namespaces and the kernel module veth.",
        )
    return Check("isolation", State.OK, f"{detail}the browser reaches only the egress proxy")


def check_disk(data_dir: Path) -> Check:
    """Check that the data folder can be written, and the disk space."""
    place = data_dir.expanduser().absolute()
    while not os.path.lexists(place):
        place = place.parent
    try:
        with TemporaryDirectory(dir=place):
            pass
    except OSError as error:
        detail = f"cannot write in {place} for ASSAY_DATA_DIR={data_dir}: {error.strerror}"
        remedy = "Set ASSAY_DATA_DIR to a folder that can be written."
        return Check("disk", State.FAILED, detail, remedy)
    bytes_free = shutil.disk_usage(place).free
    detail = f"{bytes_free / 1024**3:.1f} GiB free for {data_dir}"
    if bytes_free < FAIL_BELOW_BYTES:
        return Check("disk", State.FAILED, detail, "Free some space, or set ASSAY_DATA_DIR.")
    if bytes_free < WARN_BELOW_BYTES:
        return Check("disk", State.WARNING, detail, "A captured page takes about 1 MB.")
    return Check("disk", State.OK, detail)

"""Task files of the settings: loading, and reloading of files that change while the service runs.

At startup, it is checked whether task files can be imported, and what they declare. A child of the fork server imports
the files one after the other. If a file takes too long or ends the process, it is reported, and a new child continues
with the next file.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import structlog

import judges.tasks
from app.settings import Settings
from cache.capture import EvidencePolicy
from cache.confinement.privileges import DEFAULT_UID
from cache.image_jobs import DaemonThreadPool
from judges.errors import IsolationFailed
from judges.forbidden_sources import ForbiddenSource
from judges.isolation.fork_server_pool import ForkServerPool
from judges.loader import JUDGE_SUFFIXES, JudgeCatalogue, judge_files, load_judges
from judges.registry import Judge, JudgeKind
from mind2web2.host import PRELOADED
from rubrics.tree import Strategy

_ENTRY: Final = "mind2web2.script_check:check_files"
START_S = 60.0
SCRIPT_S = 10.0
TOTAL_S = 180.0
FILES_OF_CHILD: Final = 50
MAX_REPORT_BYTES: Final = 1024 * 1024
_log = structlog.get_logger(__name__)


ImportReport: TypeAlias = "str | dict[str, Any] | None"
"""The error of a file; or the declarations of a native judge; None for a valid public script."""


def with_description(judge: Judge, report: Mapping[str, Any]) -> Judge:
    """Return a native judge with the declarations that the child reported."""
    if not report:
        return judge
    return replace(
        judge,
        description=str(report["description"]),
        version=str(report["version"]),
        strategy=Strategy(report["strategy"]),
        function=str(report["function"]),
        forbidden_sources=tuple(map(ForbiddenSource.model_validate, report["forbidden_sources"])),
        supplied_evidence=None if report["supplied_evidence"] is None else EvidencePolicy(report["supplied_evidence"]),
    )


async def import_reports(
    process_pool: ForkServerPool, scripts: Sequence[Path], *, script_s: float | None = None
) -> dict[Path, ImportReport]:
    """Import the task files in a child process and return its reports.

    Files that are not checked within ``TOTAL_S``, or because no child starts, count as valid and have no report.

    Args:
        process_pool: Pool whose fork server starts the child.
        scripts: The task files.
        script_s: Time limit of one import (default: SCRIPT_S).
    """
    by_path: dict[Path, ImportReport] = {}
    remaining, give_up_at = list(scripts), time.monotonic() + TOTAL_S
    try:
        while remaining and time.monotonic() < give_up_at:
            batch = remaining[:FILES_OF_CHILD]
            reports, ending = await _run_child(process_pool, batch, script_s or SCRIPT_S, give_up_at)
            by_path |= dict(zip(batch, reports, strict=False))
            remaining = remaining[len(reports) :]
            if ending is not None:
                by_path[remaining.pop(0)] = ending
    except IsolationFailed as error:
        _log.warning("no process for task scripts", detail=str(error))
    if remaining:
        _log.warning("task scripts not checked", scripts=[path.stem for path in remaining])
    return by_path


async def _run_child(
    process_pool: ForkServerPool, scripts: Sequence[Path], script_s: float, give_up_at: float
) -> tuple[list[ImportReport], str | None]:
    """Return the child's reports on the first files, and how the next file ended it (None: all were reported).

    Raises:
        IsolationFailed: The child did not start, which is not the fault of a file.
    """
    limits = replace(process_pool.limits, cpu_s=int(TOTAL_S), processes=0)
    async with process_pool.spawn(_ENTRY, judge_files=scripts, limits=limits) as child:
        reader, writer = await asyncio.open_unix_connection(sock=child.main_socket, limit=MAX_REPORT_BYTES)
        try:
            writer.write(json.dumps([str(path) for path in scripts]).encode("ascii") + b"\n")
            if not await _line(reader, START_S):
                raise IsolationFailed("the process that imports task files does not start")
            reports: list[ImportReport] = []
            for _ in scripts:
                allowed_s = max(0.1, min(script_s, give_up_at - time.monotonic()))
                line = await _line(reader, allowed_s)
                if line is None:
                    return reports, f"importing it takes longer than {script_s:g} s"
                if not line.endswith(b"\n"):
                    return reports, "importing it ends the process"
                try:
                    reports.append(_report(line))
                except ValueError:
                    return reports, "importing it ends the process"
            return reports, None
        finally:
            writer.close()


def _report(line: bytes) -> ImportReport:
    """Parse a report. A task file can write to the connection, too.

    Raises:
        ValueError: It is not a report.
    """
    match json.loads(line):
        case str() | None as report:
            return report
        case {
            "description": str(),
            "version": str(),
            "strategy": strategy,
            "function": str(),
            "forbidden_sources": list(forbidden),
            "supplied_evidence": policy,
        } as declared:
            Strategy(strategy)
            EvidencePolicy(policy or EvidencePolicy.CAPTURED)
            for each in forbidden:
                ForbiddenSource.model_validate(each)
            return dict(declared)
    raise ValueError("not a report")


async def _line(reader: asyncio.StreamReader, allowed_s: float) -> bytes | None:
    """Return the next line: incomplete if the child exited or wrote too much, None if it took too long."""
    try:
        async with asyncio.timeout(allowed_s):
            return await reader.readline()
    except TimeoutError:
        return None
    except (OSError, ValueError):  # reset by the killed child; longer than MAX_REPORT_BYTES
        return b""


_FileState: TypeAlias = tuple[Path, int, int, int]
"""Path, inode, size and time of change of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCatalogue(JudgeCatalogue):
    """Judges of a running service. ``refresh`` loads files again that were added, changed or removed."""

    settings: Settings
    process_pool: ForkServerPool | None = None
    in_process: bool = False
    _loaded: dict[str, tuple[_FileState, ...]] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    async def load(
        cls, settings: Settings, process_pool: ForkServerPool | None = None, *, in_process: bool = False
    ) -> LiveCatalogue:
        """Load all task files. For ``in_process``, see ``load_catalogue``."""
        found = await asyncio.to_thread(_file_states, settings.judges, None)
        loaded = await load_catalogue(settings, process_pool, in_process=in_process)
        return cls(
            judges=loaded.judges,
            broken=loaded.broken,
            settings=settings,
            process_pool=process_pool,
            in_process=in_process,
            _loaded=found,
        )

    async def refresh(self, tasks: Iterable[str] | None = None) -> None:
        """Load the changed files of ``tasks`` (None: of all tasks)."""
        if not self.settings.judges:
            return
        wanted = None if tasks is None else frozenset(tasks)
        if not (await self._changes(wanted))[0]:
            return
        async with self._lock:
            changed, found = await self._changes(wanted)
            if not changed:
                return
            loaded = await load_catalogue(self.settings, self.process_pool, tasks=changed, in_process=self.in_process)
            for task in changed:
                self.judges.pop(task, None)
                self.broken.pop(task, None)
                self._loaded[task] = found.get(task, ())
            self.judges.update(loaded.judges)
            self.broken.update(loaded.broken)
            _log.info("task files reloaded", tasks=sorted(changed), broken=sorted(loaded.broken))

    async def _changes(
        self, wanted: frozenset[str] | None
    ) -> tuple[frozenset[str], Mapping[str, tuple[_FileState, ...]]]:
        """Return the tasks whose files have changed, and the states of the files that exist."""
        found = await asyncio.to_thread(_file_states, self.settings.judges, wanted)
        known = (self._loaded.keys() | found.keys()) if wanted is None else wanted
        return frozenset(task for task in known if self._loaded.get(task, ()) != found.get(task, ())), found


def _file_states(folders: Sequence[Path], tasks: Collection[str] | None) -> dict[str, tuple[_FileState, ...]]:
    """Return the states of the task files by task. Blocks."""
    states: dict[str, tuple[_FileState, ...]] = {}
    for folder in map(Path.expanduser, folders):
        if tasks is None:
            paths: Iterable[Path] = judge_files(folder)
        else:
            paths = (folder / f"{task}{suffix}" for task in tasks for suffix in JUDGE_SUFFIXES)
        for path in paths:
            try:
                stat = path.stat()
            except OSError:  # there is no such file
                continue
            states[path.stem] = (*states.get(path.stem, ()), (path, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return states


async def load_catalogue(
    settings: Settings,
    process_pool: ForkServerPool | None = None,
    *,
    tasks: Collection[str] | None = None,
    in_process: bool = False,
) -> JudgeCatalogue:
    """Load the task files of ``tasks`` (None: of all) in the folders of the settings, then the shipped ones.

    The files of the settings are imported in a child process of ``process_pool`` (default: of a temporary pool). A file
    that cannot be imported is listed as broken. ``in_process`` imports native judges in this process.
    """
    thread = DaemonThreadPool(1, name="judges")  # cancellation does not wait for it
    try:
        catalogue, shipped_judges = await asyncio.get_running_loop().run_in_executor(
            thread, _load_files, settings, tasks, in_process
        )
    finally:
        thread.shutdown()
    unchecked = [judge for judge in catalogue.judges.values() if judge.coroutine is None and judge.path is not None]
    reports = {}
    if unchecked:
        async with AsyncExitStack() as stack:
            if process_pool is None:
                process_pool = ForkServerPool(PRELOADED, uid=DEFAULT_UID)
                stack.push_async_callback(process_pool.aclose)
            reports = await import_reports(process_pool, [judge.path for judge in unchecked if judge.path is not None])
    used_ids = catalogue.judges.keys() | catalogue.broken.keys()
    usable = {
        **{task: judge for task, judge in shipped_judges.judges.items() if task not in used_ids},
        **catalogue.judges,
    }
    broken = {
        **{task: error for task, error in shipped_judges.broken.items() if task not in used_ids},
        **catalogue.broken,
    }
    for judge in unchecked:
        report = reports.get(judge.path) if judge.path is not None else None
        if isinstance(report, str):
            broken[judge.task] = f"{judge.path}: {report}".rstrip()
            del usable[judge.task]
        elif judge.kind is JudgeKind.NATIVE:
            usable[judge.task] = with_description(judge, report or {})
    return JudgeCatalogue(judges=usable, broken=broken)


def _load_files(
    settings: Settings, tasks: Collection[str] | None, importing: bool
) -> tuple[JudgeCatalogue, JudgeCatalogue]:
    """Return the judges in the folders of the settings, and the shipped ones. Blocks."""
    shipped = Path(judges.tasks.__file__).parent
    own = load_judges(settings.judges, importing=importing, tasks=tasks)
    return own, load_judges([shipped], tasks=tasks)

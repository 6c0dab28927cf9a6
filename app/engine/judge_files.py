"""Task files of the settings: loading, and reloading of files that change while the service runs."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import structlog

import judges.tasks
from app.engine.import_check import import_reports, with_description
from app.settings import Settings
from cache.confinement.privileges import DEFAULT_UID
from cache.daemon_threads import DaemonThreadPool
from judges.isolation.fork_server_pool import ForkServerPool
from judges.loader import JUDGE_SUFFIXES, JudgeCatalogue, judge_files, load_judges
from judges.registry import JudgeKind
from mind2web2.isolated_run import PRELOADED

_log = structlog.get_logger(__name__)

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

"""Steps of a split, from the published JSON or from rows of Multimodal-Mind2Web.

A data root is one file, the folder of a split, or a parent folder whose files are named after the split.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from judges.suites.errors import DataMissing, DataUnreadable
from judges.suites.mind2web.steps import Candidate, Step
from judges.suites.mind2web.tasks_json import OPS, count_steps, read_tasks_file
from judges.suites.multimodal import source_rows
from judges.suites.multimodal.row_files import count_rows, read_rows
from judges.suites.multimodal.source_rows import SourceStep, read_source_step

ROW_SUFFIXES = frozenset({".parquet", ".jsonl"})
SUFFIXES = frozenset({".json"}) | ROW_SUFFIXES
KNOWN_SPLITS = ("train", "test_task", "test_website", "test_domain")
_COLUMNS = tuple(name for name in source_rows.COLUMNS if name != "screenshot")
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Files of a split, in order. ``max_steps`` limits the number of steps."""

    name: str
    files: tuple[Path, ...]
    max_steps: int | None = None

    def steps(self) -> Iterator[Step]:
        """Yield the steps in order. Reads lazily. Blocks.

        Raises:
            DataUnreadable: a file or a field is malformed.
        """
        position = 0
        for file in self.files:
            for step in _read(file, position):
                if self.max_steps is not None and position >= self.max_steps:
                    return
                yield step
                position += 1

    def count(self) -> int:
        """Return the number of steps that ``steps`` yields, without decoding them. Blocks."""
        count = 0
        for file in self.files:
            if self.max_steps is not None and count >= self.max_steps:
                break
            count += count_rows(file) if file.suffix in ROW_SUFFIXES else count_steps(file)
        return count if self.max_steps is None else min(count, self.max_steps)


def find_split(root: Path, name: str, *, max_steps: int | None = None) -> Split:
    """Return the split with the files found under ``root``.

    Raises:
        DataMissing: there are none. The message lists the files that exist.
    """
    return Split(name=name, files=tuple(_files(root, name)), max_steps=max_steps)


def _files(root: Path, split: str) -> list[Path]:
    if root.is_file():
        if root.suffix not in SUFFIXES:
            raise DataMissing(f"{root} must be a .json, .jsonl or .parquet file")
        return [root]
    if not root.is_dir():
        raise DataMissing(f"{root} does not exist")
    for found in (_data_files(root / split), _named(root, split), _unnamed(root, split)):
        if found:
            return found
    existing = ", ".join(sorted(path.name for path in root.iterdir())[:10]) or "nothing"
    raise DataMissing(f"{root}: no file of split {split!r} (*{split}*.json, .jsonl or .parquet); found: {existing}")


def _data_files(folder: Path) -> list[Path]:
    return _sorted_files(path for path in folder.glob("*") if path.suffix in SUFFIXES and path.is_file())


def _named(root: Path, split: str) -> list[Path]:
    """Return the files named after the split, from this folder or, if it has none, from any subfolder."""

    def fits(path: Path) -> bool:
        return split in path.name and path.suffix in SUFFIXES and path.is_file()

    return _sorted_files(path for path in root.iterdir() if fits(path)) or _sorted_files(
        path for path in root.rglob("*") if fits(path)
    )


def _unnamed(root: Path, split: str) -> list[Path]:
    """Return all data files of a folder, unless the folder or a file is named after another split."""
    found = _data_files(root)
    others = [name for name in KNOWN_SPLITS if name != split]
    if root.name != split and any(name in path.name for path in (root, *found) for name in others):
        return []
    return found


def _sorted_files(paths: Iterator[Path]) -> list[Path]:
    """Sort by name, ``test_task_2`` before ``test_task_10``. If there are JSON files, row files are ignored."""
    found = sorted(paths, key=_natural_key)
    tasks = [path for path in found if path.suffix == ".json"]
    return tasks or found


def _natural_key(path: Path) -> list[tuple[str, int]]:
    parts = _DIGITS.split(str(path))
    return [(text, int(digits or 0)) for text, digits in zip(parts[::2], [*parts[1::2], "0"], strict=True)]


def _read(file: Path, position: int) -> Iterator[Step]:
    if file.suffix not in ROW_SUFFIXES:
        yield from read_tasks_file(file, first_position=position)
        return
    for offset, row in enumerate(read_rows(file, _COLUMNS)):
        yield _from_row(read_source_step(row.values, place=row.place), position + offset)


def _from_row(row: SourceStep, position: int) -> Step:
    if row.op not in OPS:
        raise DataUnreadable(f"{row.place}, field operation.op", f"must be one of {', '.join(sorted(OPS))}")
    return Step(
        place=f"{row.place} (task {row.task_id}, action {row.action_uid})",
        position=position,
        task_id=row.task_id,
        action_uid=row.action_uid,
        number=row.step,
        website=row.website,
        domain=row.domain,
        subdomain=row.subdomain,
        task=row.task,
        history=row.history,
        page=row.page,
        op=row.op,
        value=row.value,
        positives=tuple(Candidate(id=one.id, tag=one.tag, box=one.box) for one in row.positives),
        negatives=tuple(Candidate(id=one.id, tag=one.tag, box=one.box) for one in row.negatives),
    )

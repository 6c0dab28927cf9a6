"""Result of one judged answer as JSON, and the names and paths of result files.

It contains ``get_summary()`` of the public toolkit and everything needed to dispute the score. Native judgements and
public scripts both go through ``build_result``.

In the public folder layout, a result is stored at
``<out>/<agent>/<task_id>/answer_<k>/results/<YYYYmmdd_HHMMSS>_answer_<k>.md.json``. Copies of the answer and its
metadata are in ``answer_<k>``. Before an answer is judged again, its results move to ``results/superseded``, so that an
answer whose judging failed has no result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json, to_json

from cache.atomic_files import write_atomic
from cache.capture import Capture
from judges.llm.providers import LEXICAL
from judges.registry import Judge
from judges.runner import ExtractionRecord, Judgement
from rubrics.scoring import Score, compatible_score, tree_score
from rubrics.tree import statistics
from rubrics.tree_json import tree_json
from rubrics.verdict import Usage

RESULT_SCHEMA_VERSION: Final = 2
SCORING_VERSION: Final = 3
"""Version of the rules that lead from replies of the judge to scores, as the public toolkit counts them."""
NOTHING_APPLIES: Final = "nothing_applies"
"""Reason of a result without a score: no part of the rubric applies to the answer, so its judge declared no leaf."""
NO_INFO: Final = {"no_info": "No information recorded"}
LEXICAL_NOTICE: Final = (
    "Judged by the lexical baseline: it reads labels, lists, tables and links of English texts, and compares words, "
    "names, numbers and dates, but not meaning."
)


def native_summary(judgement: Judgement, *, agent_name: str) -> dict[str, Any]:
    """Return a native judgement in the format of the public ``get_summary()``, plus ``status`` and both scores.

    ``extraction_error`` is only present if the rubric may lack parts, ``score_unclipped`` if it has penalties.
    """
    rubric, unclipped = judgement.rubric, judgement.score_unclipped
    return {
        "agent_name": agent_name,
        "answer_name": judgement.answer.name,
        "final_score": tree_score(rubric.root, lambda leaf: compatible_score(leaf.verdict).score),
        "judge_model": judgement.model,
        "extract_model": judgement.model,
        "eval_breakdown": [
            {
                "info": [_info(record) for record in judgement.extractions] or [dict(NO_INFO)],
                "verification_tree": tree_json(rubric),
            }
        ],
        "tree_statistics": asdict(statistics(rubric.root)),
        "status": "complete" if judgement.complete else "incomplete",
        "score": score_json(None if judgement.nothing_applies else judgement.score),
        "score_strict": score_json(None if judgement.nothing_applies else judgement.score_strict),
        **({} if unclipped is None else {"score_unclipped": score_json(unclipped)}),
        **({} if judgement.undeclared is None else {"extraction_error": judgement.undeclared.reasoning}),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What a run adds to the summary of its judge.

    Attributes:
        id: Id of the result; None if it is not stored.
        judged_with: ``judge`` (model, reasoning effort and temperature), and other keys of the result about the run.
        timing: Seconds by stage.
        pages: Entries as returned by ``page_json``.
        calls: Identifies the record of model calls; None if there is none.
    """

    id: str | None
    judge: Judge
    judged_with: Mapping[str, Any]
    model: str
    prompts: Iterable[str]
    answer_sha256: str
    usage: Usage
    timing: Mapping[str, Any]
    pages: Iterable[Mapping[str, Any]]
    calls: Mapping[str, Any] | None = None


def build_result(summary: Mapping[str, Any], run: RunFacts) -> dict[str, Any]:
    """Return the complete result.

    ``summary`` is a ``get_summary()`` with ``status``, ``score`` and ``score_strict``.
    """
    judge = run.judge
    result = {
        "schema_version": RESULT_SCHEMA_VERSION,
        "id": run.id,
        "task_id": judge.task,
        **summary,
        **run.judged_with,
        "script": {"name": judge.name, "version": judge.version, "kind": judge.kind.value, "sha256": judge.sha256},
        "eval_script_sha256": judge.sha256,
        "model": run.model,
        "prompts": sorted(set(run.prompts)),
        "answer_sha256": run.answer_sha256,
        "tool_version": _tool_version(),
        "usage": asdict(run.usage),
        "timing": dict(run.timing),
        "pages": [dict(page) for page in run.pages],
        "calls": None if run.calls is None else dict(run.calls),
    }
    if run.model == LEXICAL:
        result["notice"] = LEXICAL_NOTICE
    return result


@cache
def _tool_version() -> str:
    """Return the version of this package. Reading it from the metadata takes a millisecond."""
    return version("assay")


def score_json(score: Score | None) -> dict[str, Any]:
    """Return a score in the format of results. None, if nothing applies, has a ``reason`` instead of numbers."""
    if score is None:
        return {"value": None, "low": None, "high": None, "reason": NOTHING_APPLIES}
    return {"value": score.value, "low": score.low, "high": score.high}


def page_json(capture: Capture) -> dict[str, Any]:
    """Return the entry of a cited page.

    ``sha256`` is that of the page text, or of its first stored body if it has no text. ``bodies`` maps the role of
    every stored body to its SHA-256.
    """
    blobs = capture.blobs
    shown_body = blobs.get("text") or next(iter(blobs.values()), None)
    return {
        "url": capture.url,
        "page_id": capture.id,
        "outcome": capture.outcome.value,
        "kind": capture.kind.value,
        "sha256": shown_body and shown_body.sha256,
        "captured_at": capture.captured_at.isoformat(),
        "final_url": capture.final_url,
        "http_status": capture.http_status,
        "detail": capture.detail,
        "gone": capture.gone,
        "source": capture.source.value,
        "provenance": dict(capture.provenance),
        "owner": capture.owner,
        "bodies": {role: blob.sha256 for role, blob in blobs.items()},
    }


def _info(record: ExtractionRecord) -> dict[str, Any]:
    """Return one extraction under its name, as in the public summary; a failed one has an ``error``."""
    if record.value is None:
        return {record.name: {"error": record.error}}
    return {record.name: record.value}


STAMP_FORMAT = "%Y%m%d_%H%M%S"
DEBUG_MARK = "_debug"
SUPERSEDED = "superseded"
FAILURE_FILE = "failed.json"
METADATA_SUFFIX = ".meta.json"
TASK_SUMMARY = "summary.json"
AGENT_SUMMARY = "summary.json"
MERGED_RESULTS = "all_results.json"

_STAMP = re.compile(r"\d{8}_\d{6}")
_RESULT_NAME = re.compile(r"(\d{8}_\d{6})_(.+)\.json", re.DOTALL)


def agent_folder(out: Path, agent: str) -> Path:
    return out / agent


def task_folder(out: Path, agent: str, task_id: str) -> Path:
    return out / agent / task_id


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFolder:
    """Folder of one answer. ``answer_name`` ends in ``.md``."""

    out: Path
    agent: str
    task_id: str
    answer_name: str

    @property
    def path(self) -> Path:
        return task_folder(self.out, self.agent, self.task_id) / self.answer_name.removesuffix(".md")

    @property
    def results(self) -> Path:
        return self.path / "results"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def answer_copy(self) -> Path:
        return self.path / self.answer_name

    @property
    def metadata_copy(self) -> Path:
        return self.path / (self.answer_name.removesuffix(".md") + METADATA_SUFFIX)

    def result_path(self, at: datetime, *, debug: bool = False) -> Path:
        """Return the path of the result with the time ``at``."""
        return self.results / result_name(at.strftime(STAMP_FORMAT), self.answer_name, debug=debug)

    def free_result_path(self, at: datetime, *, debug: bool = False) -> Path:
        """Like ``result_path``, but advance by one second while a result, superseded or not, has this name."""
        while (path := self.result_path(at, debug=debug)).exists() or (path.parent / SUPERSEDED / path.name).exists():
            at += timedelta(seconds=1)
        return path

    def newest_result(self) -> Path | None:
        """Return the result with the newest stamp, without superseded ones and those of self-debug runs."""
        return newest_result_file(self.results, self.answer_name)

    def copy_inputs(self, answer: bytes, metadata: bytes | None) -> None:
        """Store copies of the answer and its metadata file. Without ``metadata``, remove the old copy."""
        write_atomic(self.answer_copy, answer)
        if metadata is None:
            self.metadata_copy.unlink(missing_ok=True)
        else:
            write_atomic(self.metadata_copy, metadata)

    def write_failure(self, error: str, traceback: str = "") -> None:
        """Store why the answer has no result."""
        note = {"answer_name": self.answer_name, "error": error, "traceback": traceback}
        write_json(self.path / FAILURE_FILE, note)

    def clear_failure(self) -> None:
        (self.path / FAILURE_FILE).unlink(missing_ok=True)


def result_name(stamp: str, answer_name: str, *, debug: bool = False) -> str:
    """Return the file name of a result. ``stamp`` has the format ``YYYYmmdd_HHMMSS``."""
    return f"{stamp}_{answer_name}{DEBUG_MARK if debug else ''}.json"


def is_stamp(text: str) -> bool:
    """Return whether ``text`` has the format of the stamp of a result."""
    return _STAMP.fullmatch(text) is not None


def newest_result_file(results: Path, answer_name: str | None = None) -> Path | None:
    """Return the result with the newest stamp in a results folder, of ``answer_name`` if given.

    Results of self-debug runs are left out.
    """
    return max(_final_results(_files(results), answer_name), key=lambda path: path.name, default=None)


def supersede_results(results: Path) -> list[Path]:
    """Move everything in a results folder to its folder ``superseded``. Return the new paths."""
    moved = []
    for path in sorted(results.iterdir()) if results.is_dir() else ():
        if path.name == SUPERSEDED:
            continue
        target = results / SUPERSEDED / path.name
        target.parent.mkdir(exist_ok=True)
        number = 1
        while target.exists():
            target, number = target.with_name(f"{path.stem}_{number}{path.suffix}"), number + 1
        moved.append(path.rename(target))
    return moved


def _final_results(paths: Iterable[Path], answer_name: str | None) -> list[Path]:
    """Return the paths whose name is that of a result, of ``answer_name`` if given, and not of a self-debug run."""
    names = ((path, _RESULT_NAME.fullmatch(path.name)) for path in paths)
    return [
        path
        for path, name in names
        if name is not None and not name[2].endswith(DEBUG_MARK) and answer_name in (None, name[2])
    ]


def judged_tasks(out: Path, agent: str) -> list[str]:
    """Return the tasks for which the agent has a folder, sorted."""
    return _folders(agent_folder(out, agent))


def judged_answers(out: Path, agent: str, task_id: str) -> list[AnswerFolder]:
    """Return the answers of one task that have a result, sorted by name."""
    folders = [
        AnswerFolder(out=out, agent=agent, task_id=task_id, answer_name=f"{name}.md")
        for name in _folders(task_folder(out, agent, task_id))
    ]
    return sorted((folder for folder in folders if folder.newest_result() is not None), key=lambda one: one.answer_name)


def judged_folders(out: Path, agent: str, task_ids: Collection[str] = ()) -> Iterator[AnswerFolder]:
    """Yield the answers of an agent that have a result, by task and name. Empty ``task_ids``: of all tasks."""
    for task_id in judged_tasks(out, agent):
        if not task_ids or task_id in task_ids:
            yield from judged_answers(out, agent, task_id)


def write_json(path: Path, document: Any) -> None:
    """Write JSON. Values that JSON does not support are converted with ``str``; lone surrogates become ``?``."""
    data = json.dumps(document, ensure_ascii=False, default=str).encode("utf-8", errors="replace")
    try:
        # A third of the time of ``json.dumps`` with ``indent``, which is written in Python.
        text = to_json(from_json(data), indent=2, inf_nan_mode="constants")
    except ValueError:  # more than 200 levels
        text = json.dumps(json.loads(data), ensure_ascii=False, indent=2).encode()
    write_atomic(path, text + b"\n")


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []


def _folders(parent: Path) -> list[str]:
    if not parent.is_dir():
        return []
    return sorted(path.name for path in parent.iterdir() if path.is_dir() and not path.name.startswith("."))

"""Conversion of a Multimodal-Mind2Web step into a ~ row: sampled distractors and two prompts.

The sample has the published distribution (one positive and ``distractors`` negatives, each uniform, then shuffled). It
is not the published sample, because the order of its random calls is unknown. Each row has its own generator, seeded
with the seed and the ids of the row, so the sample does not depend on the order of rows or on their files.

A row is valid if a positive is on the page and there is a screenshot.

The output is byte-for-byte reproducible with one version of the Parquet library.

Raw pages come from the original Mind2Web dump, by task and action. In the test splits of Multimodal-Mind2Web,
``raw_html`` is a copy of ``cleaned_html``. The page itself, with elements that cleaning removed, is only in the dump
(docs/mind2web-rules.md).
"""

from __future__ import annotations

import base64
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from lxml import etree

from cache.atomic_files import atomic_path
from judges.prompting.prompts import load_prompt
from judges.suites.errors import DataUnreadable, PageUnusable, SuiteError
from judges.suites.json_items import item_spans, read_item
from judges.suites.mind2web.data import STEP_COLUMNS, Candidate, Step, check_layout, read_step
from judges.suites.mind2web.page import ID, Element, Page, show_page
from judges.suites.multimodal.row_files import SUFFIXES, RowFields, read_rows
from judges.suites.questions import option_lines, option_name


class RawPages:
    """Pages of a JSON file of tasks, or of all such files in a folder. Keeps only the places of the tasks in memory."""

    def __init__(self, path: Path) -> None:
        """Read the files once to find the tasks. Blocks.

        Raises:
            SuiteError: there is no file.
            DataUnreadable: a file is not a list of tasks.
        """
        files = [path] if path.is_file() else sorted(path.rglob("*.json"))
        if not files:
            raise SuiteError(f"{path}: there is no .json file of the Mind2Web dump")
        self._places: dict[str, tuple[Path, tuple[int, int]]] = {}
        for file in files:
            for number, (span, task) in enumerate(item_spans(file)):
                fields = RowFields.of(task, f"{file.name}, task {number}")
                self._places.setdefault(fields.text("annotation_id", needed=True), (file, span))
        self._pages = lru_cache(maxsize=4)(self._read)

    def of(self, task_id: str, action_uid: str) -> str | None:
        """Return the raw page of an action, or None if the dump lacks it. Blocks.

        Raises:
            SuiteError: the file has changed, or the task is malformed.
        """
        return self._pages(task_id).get(action_uid) if task_id in self._places else None

    def _read(self, task_id: str) -> dict[str, str]:
        file, span = self._places[task_id]
        place = f"{file.name}, task {task_id}"
        task = RowFields.of(read_item(file, span), place)
        actions = task.given("actions")
        if not isinstance(actions, list):
            raise task.error("actions", "must be a list of actions")
        fields = [RowFields.of(action, f"{place}, action {index}") for index, action in enumerate(actions)]
        pages = {action.text("action_uid", needed=True): action.text("raw_html") for action in fields}
        return {uid: page for uid, page in pages.items() if page}


PROMPTS = ("step_navigator", "step_look", "step_choose", "step_answer")
DISTRACTORS = 20
SEED = 42
VALID, INVALID = "True", "False"
"""Values of ``is_valid``, a string as on the dataset card. The reader also accepts booleans."""
_SPLIT = re.compile(r"(?<![a-z])(?:train|test_(?:task|website|domain))(?![a-z])")
_OWN_ID = re.compile(rf"(\s){ID}(?=\s*=)")
_IMAGE_KINDS = ((b"\x89PNG", "png"), (b"\xff\xd8", "jpeg"), (b"RIFF", "webp"), (b"GIF8", "gif"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingOptions:
    """Sampling parameters of distractors."""

    distractors: int = DISTRACTORS
    seed: int = SEED


def build_snapshot(
    source: Path,
    out: Path,
    draw: SamplingOptions,
    *,
    split: str | None,
    watch: Callable[[int], None],
    raw: Path | None = None,
) -> dict[str, Any]:
    """Write a snapshot and return its counts. With ``split``, only of rows of this split. Blocks.

    The split of a row is in the row or in the name of its file. ``raw`` is the original Mind2Web dump: ``raw_html`` is
    taken from it. A row that the dump lacks keeps its own and is counted.

    Raises:
        SuiteError: no file is left behind.
    """
    other_splits: Counter[str] = Counter()
    tasks: set[str] = set()
    seen: dict[str, str] = {}
    counts = {"rows": 0, "valid": 0, "without_positive": 0, "without_screenshot": 0, "without_raw_page": 0}
    raw_pages = None if raw is None else RawPages(raw)
    with open_writer(out) as write:
        for row in read_rows(source, (*STEP_COLUMNS, "screenshot", "split")):
            check_layout(row.values, row.place)
            own_split = _split(row.values, row.place)
            if split not in (None, own_split):
                other_splits[own_split] += 1
                continue
            step = read_step(row.values, place=row.place)
            id = f"{step.task_id}:{step.number}"
            if id in seen:
                raise DataUnreadable(row.place, f"repeats step {id} of {seen[id]}")
            seen[id] = row.place
            if raw_pages is not None:
                raw_page = raw_pages.of(step.task_id, step.action_uid)
                counts["without_raw_page"] += raw_page is None
                step = replace(step, raw_page=raw_page or step.raw_page)
            values = tilde_values(step, draw, split=own_split)
            try:
                write(values)
            except UnicodeEncodeError as error:
                problem = "has a lone surrogate, which Parquet cannot store: write the snapshot to a .jsonl file"
                raise DataUnreadable(row.place, problem) from error
            tasks.add(step.task_id)
            counts["rows"] += 1
            counts["valid"] += values["is_valid"] == VALID
            counts["without_positive"] += not values["target_elements"]
            counts["without_screenshot"] += step.screenshot is None
            watch(counts["rows"])
        if not counts["rows"]:
            existing = f"; existing splits: {', '.join(sorted(other_splits))}" if other_splits else ""
            raise SuiteError(f"{source} has no row{f' of the split {split}' if split else ''}{existing}")
    others = other_splits.total()
    return {**counts, "other_splits": others, "tasks": len(tasks), "distractors": draw.distractors, "seed": draw.seed}


def _split(values: dict[str, Any], place: str) -> str:
    """Return the split that the row or its file name contains.

    Raises:
        DataUnreadable: neither contains one.
    """
    split = values.get("split")
    if isinstance(split, str) and split:
        return split
    match = _SPLIT.search(place)
    if match is None:
        raise DataUnreadable(
            place,
            "has no split: name the file like test_website-00000.parquet (train, test_task, test_website or "
            "test_domain), or add a column split",
        )
    return match[0]


def tilde_values(step: Step, draw: SamplingOptions, *, split: str) -> dict[str, Any]:
    """Return the row of a step, by column. Deterministic.

    Raises:
        DataUnreadable: the page is not XML, or the screenshot is not a supported picture.
    """
    try:
        page = Page.parse(step.page)
        positives = [positive for positive in step.positives if page.contains(positive.id)]
        candidates = sample_candidates(step, page, positives, draw)
        shown = dict(show_page(page, tuple(candidate.id for candidate in candidates)).options)
    except PageUnusable as error:
        raise DataUnreadable(f"{step.place}, field cleaned_html", str(error)) from error
    options = [shown[candidate.id] for candidate in candidates]
    return {
        "task_id": step.task_id,
        "split": split,
        "step": step.number,
        "task_description": step.task,
        "prompt_0": _first_prompt(step),
        "prompt_1": _second_prompt(options),
        "raw_html": step.raw_page,
        "cleaned_html": _OWN_ID.sub(r"\1bnid", step.page),
        "candidates": [element_text(page.element(candidate.id)) for candidate in candidates],
        "target_elements": [element_text(page.element(positive.id)) for positive in positives],
        "target_op": step.op,
        "target_op_value": step.value,
        "website": step.website,
        "domain": step.domain,
        "subdomain": step.subdomain,
        "is_valid": VALID if positives and step.screenshot is not None else INVALID,
        "action_uid": step.action_uid,
        "boxes": json.dumps({one.id: one.box for one in (*candidates, *positives) if one.box}, sort_keys=True),
        "prompts": ", ".join(load_prompt(name).ref for name in PROMPTS),
    }


def sample_candidates(step: Step, page: Page, positives: Sequence[Candidate], draw: SamplingOptions) -> list[Candidate]:
    """Return one positive, if there is any, and the distractors, in display order.

    Negatives that are not on the page, equal a positive or repeat another negative are excluded.
    """
    seed = f"{draw.seed}/{step.task_id}/{step.action_uid}".encode("utf-8", "surrogatepass")
    rng = random.Random(seed)  # noqa: S311 - reproducible, not a secret
    positive_ids = {positive.id for positive in positives}
    pool = {
        negative.id: negative
        for negative in step.negatives
        if negative.id not in positive_ids and page.contains(negative.id)
    }
    chosen = [rng.choice(positives)] if positives else []
    chosen += rng.sample(list(pool.values()), min(draw.distractors, len(pool)))
    rng.shuffle(chosen)
    return chosen


def element_text(element: Element) -> str:
    """Return an element and its descendants in the form of ~ rows.

    The form has ``bnid`` first, values without quotes, and no white space between tags. Each value is on one line and
    lacks characters that could end the tag.
    """
    tag = etree.QName(element).localname
    attributes = {"bnid": element.get(ID, ""), **{name: value for name, value in element.items() if name != ID}}
    written = "".join(f" {name}={_attribute_value(value)}" for name, value in attributes.items() if value)
    own_text = (element.text or "").strip() + "".join(
        element_text(child) + (child.tail or "").strip() for child in element.iterchildren(etree.Element)
    )
    return f"<{tag}{written}>{own_text}</{tag}>"


def _attribute_value(value: str) -> str:
    return " ".join(re.sub(r"[<>\"']", " ", value).split())


def _first_prompt(step: Step) -> list[dict[str, Any]]:
    history = "\n".join(step.history) or "None"
    text = f"Task: {step.task}\n\nSteps so far:\n{history}\n\n{load_prompt('step_look').text}"
    parts = [_part(text=text)]
    if step.screenshot is not None:
        parts.append(_part(image=_data_uri(step.screenshot, step.place)))
    return [
        {"role": "system", "content": [_part(text=load_prompt("step_navigator").text)]},
        {"role": "user", "content": parts},
    ]


def _second_prompt(options: Sequence[str]) -> list[dict[str, Any]]:
    choose = load_prompt("step_choose").render(none_letter=option_name(len(options)))
    listed = "\n".join(option_lines(options))
    text = f"{choose}\n\n{listed}\n\n{load_prompt('step_answer').text}"
    return [{"role": "user", "content": [_part(text=text)]}]


def _part(*, text: str | None = None, image: str | None = None) -> dict[str, Any]:
    """Return a message part with both keys, one of them null, as in the published rows."""
    picture: Mapping[str, str] | None = None if image is None else {"url": image, "detail": "high"}
    return {"type": "text" if image is None else "image_url", "text": text, "image_url": picture}


def _data_uri(image: bytes, place: str) -> str:
    """Return the unchanged bytes of an image file as a data URI."""
    kind = next((kind for start, kind in _IMAGE_KINDS if image.startswith(start)), None)
    if kind is None:
        raise DataUnreadable(f"{place}, field screenshot", "is not a PNG, JPEG, WebP or GIF image")
    return f"data:image/{kind};base64,{base64.b64encode(image).decode('ascii')}"


_ROWS_PER_GROUP = 16
"""A row group is buffered in memory until it is complete, and a lookup of one row reads the whole group."""


WriteRow: TypeAlias = Callable[[dict[str, Any]], None]


@contextmanager
def open_writer(path: Path) -> Iterator[WriteRow]:
    """Open a writer. The file appears atomically on success, and not at all after an error.

    Raises:
        SuiteError: the suffix is neither .parquet nor .jsonl, or the file system reports an error.
    """
    if path.suffix not in SUFFIXES:
        raise SuiteError(f"{path} must end in .parquet or .jsonl")
    open_rows = _parquet_rows if path.suffix == ".parquet" else _json_lines
    try:
        with atomic_path(path) as draft, open_rows(draft) as write:
            yield write
    except (OSError, pa.ArrowException) as error:
        raise SuiteError(f"{path} cannot be written: {error}") from error


@contextmanager
def _json_lines(path: Path) -> Iterator[WriteRow]:
    with path.open("w", encoding="utf-8", newline="\n") as file:

        def write(values: dict[str, Any]) -> None:
            file.write(json.dumps(values, ensure_ascii=True, separators=(",", ":")) + "\n")

        yield write


@contextmanager
def _parquet_rows(path: Path) -> Iterator[WriteRow]:
    rows: list[pa.RecordBatch] = []
    with pq.ParquetWriter(path, _SCHEMA, compression="zstd", use_dictionary=False) as writer:

        def flush() -> None:
            writer.write_table(pa.Table.from_batches(rows).combine_chunks())
            rows.clear()

        def write(values: dict[str, Any]) -> None:
            rows.append(pa.RecordBatch.from_pylist([values], schema=_SCHEMA))
            if len(rows) == _ROWS_PER_GROUP:
                flush()

        yield write
        if rows:
            flush()


_TEXTS = pa.list_(pa.string())
_PICTURE = pa.struct([("url", pa.string()), ("detail", pa.string())])
_PART = pa.struct([("type", pa.string()), ("text", pa.string()), ("image_url", _PICTURE)])
_MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.list_(_PART))]))
_TYPES = {
    "step": pa.int64(),
    "prompt_0": _MESSAGES,
    "prompt_1": _MESSAGES,
    "candidates": _TEXTS,
    "target_elements": _TEXTS,
}
_SCHEMA = pa.schema(
    [
        (name, _TYPES.get(name, pa.string()))
        for name in (
            "task_id", "split", "step", "task_description", "prompt_0", "prompt_1", "raw_html", "cleaned_html",
            "candidates", "target_elements", "target_op", "target_op_value", "website", "domain", "subdomain",
            "is_valid", "action_uid", "boxes", "prompts",
        )
    ]
)  # fmt: skip

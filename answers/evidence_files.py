"""Pages that an agent supplies beside an answer in files: ``answer_<k>.evidence/`` with ``index.json``.

The index is a list of records. A record has ``url`` and either a content (see ``cache.sources.supplied``) or ``file``,
the name of a file in the folder, whose suffix names the type. Pure: files are given by their names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from answers.errors import InvalidSubmission, ProblemCode, invalid

EVIDENCE_SUFFIX: Final = ".evidence"
INDEX: Final = "index.json"
_CONTENT_OF_SUFFIX: Final[Mapping[str, str]] = {
    **dict.fromkeys(("txt", "md"), "text"),
    **dict.fromkeys(("html", "htm"), "html"),
    **dict.fromkeys(("mhtml", "mht"), "mhtml"),
    "pdf": "pdf",
    **dict.fromkeys(("png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff"), "image"),
}


def evidence_folder(answer_name: str) -> str:
    """Return the name of the folder with the pages of an answer.

    >>> evidence_folder("answer_1.md")
    'answer_1.evidence'
    """
    return answer_name.removesuffix(".md") + EVIDENCE_SUFFIX


def evidence_records(files: Mapping[str, bytes], path: str) -> tuple[Mapping[str, Any], ...]:
    """Return the records of a folder, with the bytes of a file instead of its name. ``path`` is the folder in messages.

    Raises:
        InvalidSubmission: There is no valid index, or it names a file that cannot be used, or a file is not in it.
    """
    if INDEX not in files:
        raise invalid_evidence(f"{path}/{INDEX}", 'is missing: list the pages in it, as [{"url": ..., "file": ...}]')
    try:
        index = json.loads(files[INDEX])
    except (ValueError, RecursionError) as error:
        raise invalid_evidence(f"{path}/{INDEX}", f"is not JSON: {error}") from error
    if not isinstance(index, list):
        raise invalid_evidence(f"{path}/{INDEX}", 'is not a list of pages: write [{"url": ..., "file": ...}]')
    left = set(files) - {INDEX}
    records = []
    for place, record in enumerate(index):
        if isinstance(record, Mapping) and "file" in record:
            left.discard(str(record["file"]))
            record = _with_content(record, files, f"{path}/{INDEX}.{place}.file")
        records.append(record)
    if left:
        raise invalid_evidence(f"{path}/{min(left)}", f"is not in {INDEX}: add its URL, or remove it")
    return tuple(records)


def _with_content(record: Mapping[str, Any], files: Mapping[str, bytes], path: str) -> dict[str, Any]:
    name = record["file"]
    if not isinstance(name, str) or name not in files or name == INDEX:
        raise invalid_evidence(path, f"{str(name)[:100]!r} is not a file beside {INDEX}")
    kind = _CONTENT_OF_SUFFIX.get(name.rpartition(".")[2].lower())
    if kind is None:
        raise invalid_evidence(path, f"{name!r} has no known suffix: use one of {', '.join(_CONTENT_OF_SUFFIX)}")
    if record.get(kind) is not None:
        raise invalid_evidence(path, f"is given beside {kind}: give one of them")
    return {key: value for key, value in record.items() if key != "file"} | {kind: files[name]}


def invalid_evidence(path: str, message: str) -> InvalidSubmission:
    """Return the error for a folder of pages or a file in it."""
    return invalid(path, message, ProblemCode.NOT_JSON)

"""The payload described as an RO-Crate 1.1: which file is what, and which run of which software made it of what."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.features.bundles.contents import (
    INDEX,
    WACZ,
    Index,
    Listed,
    answer_path,
    calls_path,
    capture_path,
    overrides_path,
    result_path,
    script_path,
    tree_path,
)
from cache.capture import Capture

_CONTEXT = "https://w3id.org/ro/crate/1.1/context"
_PROCESS_RUN = "https://w3id.org/ro/wfrun/process/0.5"
_PROGRAM = "#assay"
_AGENT = "#agent"
_FORMATS = {
    "md": "text/markdown",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "txt": "text/plain",
    "html": "text/html",
    "jpg": "image/jpeg",
    "png": "image/png",
    "pdf": "application/pdf",
    "py": "text/x-python",
    "wacz": "application/wacz+zip",
}


def crate_of(index: Index, sizes: Mapping[str, int], captures: Mapping[str, Capture], at: datetime) -> dict[str, Any]:
    """The metadata document; ``sizes`` are those of all files by path, ``at`` the crate's date."""
    files = sorted(sizes)
    known = set(files)
    graph: list[dict[str, Any]] = [
        {
            "@id": "ro-crate-metadata.json",
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": f"Evidence bundle of {index.agent}",
            "description": (
                f"{len(index.results)} judged answers of the agent {index.agent}: answers, results, trees, "
                "judge scripts, prompts, every request to a model with its reply, and every page as it was captured."
            ),
            "datePublished": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "license": "Captured pages belong to their authors; all else is its owner's.",
            "conformsTo": {"@id": _PROCESS_RUN},
            "about": {"@id": _AGENT},
            "mainEntity": {"@id": INDEX},
            "mentions": [{"@id": _run_id(each)} for each in index.results],
            "hasPart": [{"@id": path} for path in files],
        },
        {"@id": _PROCESS_RUN, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
        {"@id": _PROGRAM, "@type": "SoftwareApplication", "name": "assay"},
        {"@id": _AGENT, "@type": "SoftwareApplication", "name": index.agent},
    ]
    graph += [_file(path, sizes[path]) for path in files]
    graph += [_run(each, known) for each in index.results]
    graph += [_page(capture) for _, capture in sorted(captures.items())]
    return {"@context": _CONTEXT, "@graph": graph}


def _file(path: str, size: int) -> dict[str, Any]:
    ending = path.rpartition(".")[2]
    described = {"@id": path, "@type": "File", "contentSize": str(size)}
    described["encodingFormat"] = _FORMATS.get(ending, "application/octet-stream")
    if path == INDEX:
        described["name"] = "Which file belongs to which result"
    if path == WACZ:
        described["name"] = "The captured pages, for a player of web archives"
    return described


def _run_id(listed: Listed) -> str:
    return f"#judged-{listed.result_id}"


def _run(listed: Listed, known: set[str]) -> dict[str, Any]:
    """Judging one answer, as an action with what went in and what came out."""
    went_in = [capture_path(page) for page in listed.pages]
    if listed.answer is not None:
        went_in.insert(0, answer_path(listed.answer))
    instruments = [{"@id": _PROGRAM}]
    if listed.script is not None:
        instruments.append({"@id": script_path(listed.script)})
    made = [path(listed.result_id) for path in (result_path, tree_path, calls_path, overrides_path)]
    return {
        "@id": _run_id(listed),
        "@type": "CreateAction",
        "name": f"Judging {listed.answer_name} of task {listed.task_id}",
        "instrument": instruments,
        "object": [{"@id": path} for path in went_in if path in known],
        "result": [{"@id": path} for path in made if path in known],
    }


def _page(capture: Capture) -> dict[str, Any]:
    """The page that a capture shows, as something of the web."""
    return {
        "@id": f"#page-{capture.id}",
        "@type": "WebPage",
        "url": capture.url,
        "name": capture.title or capture.url,
        "subjectOf": {"@id": capture_path(capture.id)},
    }

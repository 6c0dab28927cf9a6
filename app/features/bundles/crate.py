"""RO-Crate 1.1 metadata: describes the files of the payload and, for each result, the run that produced it.

``assay bundle replay`` generates these files again and compares the bytes. A change of their format is therefore a new
format version of bundles (``layout.FORMAT``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from typing import Any

from app.features.bundles.layout import (
    INDEX,
    WACZ,
    Index,
    IndexedResult,
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
    "yaml": "application/yaml",
    "wacz": "application/wacz+zip",
}


_NO_CAPTURE_DATE = datetime(1980, 1, 1, tzinfo=UTC)


def evidence_date(captures: Iterable[Capture]) -> datetime:
    """Return the capture time of the newest page: a date that is the same for every export."""
    return max((capture.captured_at for capture in captures), default=_NO_CAPTURE_DATE).astimezone(UTC)


def bag_info(agent: str, evidence_until: datetime) -> dict[str, str]:
    """Return the fields of ``bag-info.txt``, without ``Payload-Oxum``."""
    return {
        "Source-Organization": "assay",
        "External-Description": f"Results of the agent {agent} with all evidence",
        "External-Identifier": f"assay-{agent}",
        "Bag-Software-Agent": "assay bundle export",
        "Evidence-Until": evidence_until.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def crate_metadata(
    index: Index, sizes: Mapping[str, int], captures: Mapping[str, Capture], at: datetime
) -> dict[str, Any]:
    """Return the metadata document. ``sizes`` maps every path to its size in bytes; ``at`` is the date of the crate."""
    files = sorted(sizes)
    paths = set(files)
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
                "judge scripts, prompts, all model requests with their replies, and all captured pages."
            ),
            "datePublished": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "license": "Captured pages belong to their authors. All other files belong to the owner of the bundle.",
            "conformsTo": {"@id": _PROCESS_RUN},
            "about": {"@id": _AGENT},
            "mainEntity": {"@id": INDEX},
            "mentions": [{"@id": _action_id(result)} for result in index.results],
            "hasPart": [{"@id": path} for path in files],
        },
        {"@id": _PROCESS_RUN, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
        {"@id": _PROGRAM, "@type": "SoftwareApplication", "name": "assay"},
        {"@id": _AGENT, "@type": "SoftwareApplication", "name": index.agent},
    ]
    graph += [_file(path, sizes[path]) for path in files]
    graph += [_judging_action(result, paths) for result in index.results]
    graph += [_page(capture) for _, capture in sorted(captures.items())]
    return {"@context": _CONTEXT, "@graph": graph}


def _file(path: str, size: int) -> dict[str, Any]:
    extension = path.rpartition(".")[2]
    entity = {"@id": path, "@type": "File", "contentSize": str(size)}
    entity["encodingFormat"] = _FORMATS.get(extension, "application/octet-stream")
    if path == INDEX:
        entity["name"] = "Index: which file belongs to which result"
    if path == WACZ:
        entity["name"] = "The captured pages as a web archive (WACZ)"
    return entity


def _action_id(result: IndexedResult) -> str:
    return f"#judged-{result.result_id}"


def _judging_action(result: IndexedResult, paths: set[str]) -> dict[str, Any]:
    """Describe the judging of one answer as an action with its inputs and outputs."""
    inputs = [capture_path(page) for page in result.pages]
    if result.answer is not None:
        inputs.insert(0, answer_path(result.answer))
    instruments = [{"@id": _PROGRAM}]
    if result.script is not None:
        instruments.append({"@id": script_path(result.script, result.script_suffix)})
    outputs = [path(result.result_id) for path in (result_path, tree_path, calls_path, overrides_path)]
    return {
        "@id": _action_id(result),
        "@type": "CreateAction",
        "name": f"Judging {result.answer_name} of task {result.task_id}",
        "instrument": instruments,
        "object": [{"@id": path} for path in inputs if path in paths],
        "result": [{"@id": path} for path in outputs if path in paths],
    }


def _page(capture: Capture) -> dict[str, Any]:
    """Describe the web page that a capture shows."""
    return {
        "@id": f"#page-{capture.id}",
        "@type": "WebPage",
        "url": capture.url,
        "name": capture.title or capture.url,
        "subjectOf": {"@id": capture_path(capture.id)},
    }


_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Evidence bundle of {agent}</title>
<style>body {{ font: 16px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em }}
td, th {{ text-align: left; padding: .2em 1em .2em 0; vertical-align: top }}</style>
</head>
<body>
<h1>Evidence bundle of {agent}</h1>
<p>{count} judged answers; the newest page was captured on {at}. The parent folder contains
<code>manifest-sha256.txt</code>, which lists all files. To verify them, run
<code>sha256sum -c manifest-sha256.txt</code> there. To recompute the scores, run <code>assay bundle replay</code>.</p>
<table>
<tr><th>Task</th><th>Answer</th><th>Files</th></tr>
"""


def crate_preview(index: Index, at: datetime) -> bytes:
    """Return ``ro-crate-preview.html``."""
    head = _HEAD.format(agent=escape(index.agent), count=len(index.results), at=escape(at.strftime("%Y-%m-%d")))
    rows = "".join(map(_row, index.results))
    items = "".join(f"<li><code>{escape(file.path)}</code>: {escape(file.reason)}</li>\n" for file in index.absent)
    missing = f"<h2>Not in the bundle</h2>\n<ul>\n{items}</ul>\n" if items else ""
    return f"{head}{rows}</table>\n{missing}</body>\n</html>\n".encode("utf-8", "replace")


def _row(result: IndexedResult) -> str:
    links = [("result", result_path(result.result_id))]
    if result.answer is not None:
        links.append(("answer", answer_path(result.answer)))
    if result.script is not None:
        links.append(("judge", script_path(result.script, result.script_suffix)))
    if result.calls is not None:
        links.append((f"{result.calls} calls", calls_path(result.result_id)))
    if result.overrides:
        links.append(("overrides", overrides_path(result.result_id)))
    links += [(f"page {number}", capture_path(page)) for number, page in enumerate(result.pages, start=1)]
    files = ", ".join(f'<a href="{escape(path)}">{escape(name)}</a>' for name, path in links)
    return f"<tr><td>{escape(result.task_id)}</td><td>{escape(result.answer_name)}</td><td>{files}</td></tr>\n"

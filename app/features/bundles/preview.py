"""HTML overview of a bundle (``ro-crate-preview.html``), without scripts or external resources."""

from __future__ import annotations

from datetime import datetime
from html import escape

from app.features.bundles.contents import (
    Index,
    IndexedResult,
    answer_path,
    calls_path,
    capture_path,
    overrides_path,
    result_path,
    script_path,
)

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


def preview_of(index: Index, at: datetime) -> bytes:
    """Return ``ro-crate-preview.html``."""
    head = _HEAD.format(agent=escape(index.agent), count=len(index.results), at=escape(at.strftime("%Y-%m-%d")))
    rows = "".join(map(_row, index.results))
    items = "".join(f"<li><code>{escape(each.path)}</code>: {escape(each.why)}</li>\n" for each in index.absent)
    missing = f"<h2>Not in the bundle</h2>\n<ul>\n{items}</ul>\n" if items else ""
    return f"{head}{rows}</table>\n{missing}</body>\n</html>\n".encode("utf-8", "replace")


def _row(listed: IndexedResult) -> str:
    links = [("result", result_path(listed.result_id))]
    if listed.answer is not None:
        links.append(("answer", answer_path(listed.answer)))
    if listed.script is not None:
        links.append(("judge", script_path(listed.script)))
    if listed.calls is not None:
        links.append((f"{listed.calls} calls", calls_path(listed.result_id)))
    if listed.overrides:
        links.append(("overrides", overrides_path(listed.result_id)))
    links += [(f"page {number}", capture_path(page)) for number, page in enumerate(listed.pages, start=1)]
    files = ", ".join(f'<a href="{escape(path)}">{escape(name)}</a>' for name, path in links)
    return f"<tr><td>{escape(listed.task_id)}</td><td>{escape(listed.answer_name)}</td><td>{files}</td></tr>\n"

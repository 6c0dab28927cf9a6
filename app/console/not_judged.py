"""Report of the claims that were not judged, grouped by cause, with the remedy of each cause."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from app.console.streams import counted, stderr_console
from rubrics.tree_json import leaves_of

MAX_GROUPS = 8
"""Causes that are listed; the others are counted."""
MAX_URLS = 10
"""URLs that are listed per cause."""
_EVIDENCE = ("ok", "partial")
_DENIED = re.compile(r"(?P<cause>.*) \(ASSAY_EGRESS_ALLOW=(?P<entry>\S+) would allow it\)", re.DOTALL)
_BLOB = re.compile(r"^blob [0-9a-f]+: ")
_BLOCKED = {
    "login_wall": "behind a sign-in form",
    "captcha": "behind a captcha",
    "consent_wall": "behind a consent dialog",
    "blocked": "blocked by their site",
}
_BY_HAND = "Save each page in a browser as MHTML or PDF and import it: assay pages import FILE --page-url URL"
_DOCTOR = "assay admin doctor --model MODEL"
_PAGE_REMEDIES = {
    "egress_denied": "No setting allows it: the answer must cite another address.",
    "capture_blocked": _BY_HAND,
    "timeout": "Lower --max-pages or ASSAY_MAX_PAGES if the machine is overloaded.",
    "not_stored": "Add it to the file of --sources, or check without --sources to open it.",
    "page_not_stored": "Use --capture, or submit the answer again.",
}
_REMEDIES = {
    "llm_unavailable": ("the model was unreachable, overloaded or failing", "Wait until its provider works again."),
    "llm_rejected": ("the provider rejected the request", f"Check the key and the model: {_DOCTOR}"),
    "llm_output_unusable": ("the reply of the model could not be used", "If it happens again, use another model."),
    "no_majority": ("too many votes failed", "Only the failed votes are requested again."),
    "budget": ("the budget is used up", "Raise ASSAY_BUDGET_USD or ASSAY_BUDGET_TOKENS."),
    "timeout": (
        "the time limit was exceeded",
        "Raise ASSAY_JOB_DEADLINE_S or ASSAY_LLM_TIMEOUT_S if it happens again.",
    ),
    "page_not_fully_seen": (
        "the judge did not see all of a page",
        "If it is a scan or its text is garbled, use a model that accepts images. If its capture is incomplete or its "
        f"text is garbled: {_BY_HAND}",
    ),
    "evidence_corrupt": ("a stored page is damaged", "The page is captured again."),
}


class _Cause(NamedTuple):
    text: str
    remedy: str
    is_page: bool


def print_not_judged(results: Iterable[Mapping[str, Any] | None], *, again: str) -> None:
    """Print to stderr why claims of ``results`` were not judged; nothing if all were. ``again``: how to repeat it."""
    console = stderr_console()
    for line in not_judged_lines(results, again=again):
        console.print_line(line)


def not_judged_lines(results: Iterable[Mapping[str, Any] | None], *, again: str) -> list[str]:
    """Return the report as lines. ``results`` are JSON documents of results; None is skipped."""
    affected: defaultdict[_Cause, set[object]] = defaultdict(set)
    claims = 0
    for number, result in enumerate(results):
        pages = {page.get("url"): page for page in (result or {}).get("pages") or ()}
        for leaf in leaves_of(result) if result is not None else ():
            if leaf.get("outcome") != "not_judged":
                continue
            claims += 1
            for cause, thing in _causes(leaf, pages):
                affected[cause].add(thing if cause.is_page else (number, claims))
    if not claims:
        return []
    return [f"not judged: {counted(claims, 'claim')}", *_group_lines(affected), again]


def unread_page_lines(pages: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the causes of pages without evidence as lines, with the URLs. A page has ``url``, ``outcome`` and
    ``detail``."""
    affected: defaultdict[_Cause, set[object]] = defaultdict(set)
    for page in pages:
        affected[_page_cause(page, "")].add(page["url"])
    return _group_lines(affected, max_urls=MAX_URLS)


def _group_lines(affected: Mapping[_Cause, set[object]], *, max_urls: int = 0) -> list[str]:
    lines = []
    groups = sorted(affected.items(), key=lambda group: -len(group[1]))
    for cause, things in groups[:MAX_GROUPS]:
        lines.append(f"  {counted(len(things), 'page' if cause.is_page else 'claim')} {cause.text}")
        urls = sorted(map(str, things))[:max_urls]
        lines += [f"    {url}" for url in urls]
        if urls and len(things) > len(urls):
            lines.append(f"    and {len(things) - len(urls)} more")
        lines.append(f"    {cause.remedy}")
    if len(groups) > MAX_GROUPS:
        lines.append(f"  and {counted(len(groups) - MAX_GROUPS, 'other cause')}")
    return lines


def _causes(leaf: Mapping[str, Any], pages: Mapping[Any, Mapping[str, Any]]) -> list[tuple[_Cause, object]]:
    """Return the causes of one leaf, each with the URL of its page or None."""
    reason = str(leaf.get("reason"))
    unread = [
        page
        for url in leaf.get("sources") or ()
        if (page := pages.get(url)) is not None and page.get("outcome") not in _EVIDENCE and not page.get("gone")
    ]
    if unread:
        return [(_page_cause(page, reason), page["url"]) for page in unread]
    reasoning = " ".join(str(leaf.get("reasoning") or reason.replace("_", " ")).split())[:300]
    unnamed = f"Check the model: {_DOCTOR}" if reason == "extraction_failed" else "Remove the cause."
    text, remedy = _REMEDIES.get(reason, (_BLOB.sub("", reasoning), unnamed))
    return [(_Cause(f"because {text}", remedy, is_page=False), None)]


def _page_cause(page: Mapping[str, Any], reason: str) -> _Cause:
    outcome, detail = str(page["outcome"]), str(page.get("detail") or "")
    denied = _DENIED.fullmatch(detail)
    if denied is not None:
        text = f"denied: {denied['entry']} is not in ASSAY_EGRESS_ALLOW ({denied['cause']})"
        return _Cause(text, f"Add {denied['entry']} to ASSAY_EGRESS_ALLOW.", is_page=True)
    if outcome == "egress_denied":
        return _Cause(f"denied: {detail}", _PAGE_REMEDIES["egress_denied"], is_page=True)
    if outcome in _BLOCKED:
        return _Cause(_BLOCKED[outcome], _BY_HAND, is_page=True)
    remedy = _PAGE_REMEDIES.get(reason or outcome, f"Check the address. {_BY_HAND}")
    return _Cause(
        f"not captured: {outcome.replace('_', ' ')}{f' ({detail[:100]})' if detail else ''}", remedy, is_page=True
    )

"""Display texts: sentences for codes, and formatting of numbers, times and durations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from markupsafe import Markup, escape

from app.number_format import formatted

NONE = "\u2013"

STATES: Mapping[str, str] = {
    "passed": "passed",
    "failed": "failed",
    "partial": "partly",
    "skipped": "skipped",
    "not_judged": "not judged",
    "undecided": "undecided",
    "applies": "penalty",
    "avoided": "no penalty",
    "open": "open",
    "initialized": "undecided",
    "queued": "queued",
    "running": "running",
    "succeeded": "done",
    "cancelled": "cancelled",
    "complete": "complete",
    "incomplete": "incomplete",
    "ok": "captured",
    "http_error": "HTTP error",
    "dns_error": "DNS error",
    "tls_error": "TLS error",
    "paused": "paused",
}
"""Display texts of outcomes and statuses."""

REASONS: Mapping[str, str] = {
    "refuted": "The page does not support the claim.",
    "no_source": "The claim needs a source, and the answer gives none.",
    "no_value": "The claim needs a value, and the answer gives none.",
    "source_gone": "The cited page does not exist.",
    "source_forbidden": "The claim rests only on sources that do not count for this task.",
    "check_false": "A check by code was false.",
    "gated": "A node that it depends on did not pass, so it was not judged.",
    "llm_unavailable": "The model was unreachable, overloaded or failing.",
    "llm_rejected": "The model's provider refused the request.",
    "llm_output_unusable": "The model's reply could not be used.",
    "no_majority": "Too many votes failed to determine a majority.",
    "capture_failed": "The cited page could not be captured.",
    "page_not_stored": "The cited page is not stored, and no page was opened.",
    "capture_blocked": "A captcha, sign-in form or consent dialog appeared instead of the cited page.",
    "egress_denied": "The cited address is blocked by the egress rules.",
    "evidence_corrupt": "The stored page is damaged.",
    "page_not_fully_seen": "The judge did not see all of the page, and the rest may support the claim.",
    "timeout": "The time limit was exceeded.",
    "budget": "The budget for model requests is used up.",
    "extraction_failed": "The values that the claim needs could not be extracted.",
}

REMEDIES: Mapping[str, str] = {
    "llm_unavailable": "Retry the job when the provider works again; finished verdicts are reused.",
    "llm_rejected": "Correct the API key or the access rights at the model's provider, then retry the job.",
    "llm_output_unusable": "Retry the job; if it fails again, judge with another model.",
    "no_majority": "Retry the job; only the failed votes are requested again.",
    "capture_failed": "Capture the page again, then retry the job.",
    "page_not_stored": "Rescore with `--capture`, or submit the answer again.",
    "capture_blocked": "Open the page, upload its content or capture it again, then retry the job.",
    "egress_denied": "If the host is yours, add it to ASSAY_EGRESS_ALLOW, then retry the job.",
    "evidence_corrupt": "Capture the page again, then retry the job.",
    "page_not_fully_seen": "If the page is incomplete, capture it again or upload it. If its text is garbled, upload a "
    "readable copy. If it is a scan, use a model that accepts images. If it is too long, check the claim by hand.",
    "timeout": "Retry the job, with a longer deadline if necessary.",
    "budget": "Raise ASSAY_BUDGET_USD, restart the service, then retry the job.",
    "extraction_failed": "Retry the job; if it fails again, check the extracted values in the JSON of the result.",
}

JOB_ERRORS: Mapping[str, tuple[str, str]] = {
    "JUDGE_BUG": ("The task file raised an error.", "Fix the file at the line in the traceback, then retry."),
    "SCRIPT_LIMIT": (
        "The task file exceeded a resource limit.",
        "Fix the file or raise the limit named below, then retry.",
    ),
    "REPORT_REJECTED": ("The report cannot be checked.", "Fix the problem named below, then start a new check."),
    "SUITE_DATA": ("The data of the suite are missing or damaged.", "Fix the problem named below, then retry."),
    "BUDGET": ("The budget for model requests is used up.", "Raise the budget named below; the job then continues."),
    "UNKNOWN_TASK": (
        "The task file no longer exists.",
        "Restore it in a folder of ASSAY_JUDGES, then retry.",
    ),
    "MODEL_NOT_CONFIGURED": (
        "The model is not configured.",
        "Set the key and address of its provider, restart the service, then retry.",
    ),
    "BROWSER_UNAVAILABLE": ("No browser starts on the worker.", "Run `assay admin doctor` there to find the cause."),
    "DEADLINE": ("The job exceeded its deadline.", "Retry, or raise the time limit that is named below."),
    "ATTEMPTS_EXHAUSTED": ("Its workers failed repeatedly.", "Find the cause in the log of the worker, then retry."),
    "LLM_UNAVAILABLE": (
        "A request of the task file got no usable reply.",
        "Retry when the model replies again. Replies that were received are not requested again.",
    ),
    "PROVIDER_PAUSED": (
        "An operator paused the model's provider.",
        "Run `assay admin providers --resume NAME`; the job then continues.",
    ),
    "LLM_REJECTED": (
        "The model's provider rejects all requests.",
        "Correct the API key or its access rights; the job then continues.",
    ),
    "NOT_INSTALLED": ("The worker lacks a package.", "Install the extra named below, restart the worker, then retry."),
    "INTERNAL": (
        "An internal error stopped the job.",
        "See the traceback in the log of the service. Retry when the error is fixed.",
    ),
}
"""Meaning and remedy of each job error code."""

SIGNALS: Mapping[str, str] = {
    "orders_in_page": "The page's text contains instructions to the judge.",
    "orders_in_answer": "The answer's text contains instructions to the judge.",
    "orders_in_claim": "The claim's text contains instructions to the judge.",
    "orders_in_url": "The source's URL contains instructions to the judge.",
    "answer_says_nothing": "The answer has no content of its own.",
    "pictures_not_shown": "The model does not accept images: the claim was judged on the page's text.",
    "page_is_flooded": "The page repeats the same text many times.",
    "page_restates_task": "The page repeats the words of the task.",
    "source_is_paste": "The source is a paste site, where anyone can publish text.",
    "source_is_user_content": "The source is a site with user-generated content.",
    "source_is_search": "The source is a page of search results.",
    "source_is_shortener": "The source is a short link, which hides its target.",
    "source_is_open_redirect": "The source is an open redirect, which can lead to any site.",
    "source_host_looks_like_another": "The source's host name imitates another one.",
    "source_redirects_elsewhere": "The source redirected to another site.",
    "source_with_credentials": "The source's URL contains a user name that imitates another host.",
    "claim_names_what_page_lacks": "The claim contains a name that the page does not contain.",
}


def decimal(value: float | None, digits: int = 2, sign: str = "-") -> str:
    """Format a number with a minus sign instead of a hyphen. ``sign="+"``: positive numbers have a sign too."""
    return NONE if value is None else formatted(value, f".{digits}f", sign=sign).replace("-", "\N{MINUS SIGN}")


def points(value: float | None) -> str:
    """Format a score or a part of one, 0 to 1."""
    return decimal(value)


def percent(value: float | None) -> str:
    """Format a fraction as a percentage."""
    return NONE if value is None else f"{100 * value:.3g} %"


def score_text(score: Mapping[str, Any] | None) -> str:
    """Format a score, or its bounds if it is open."""
    if score is None:
        return NONE
    if score.get("value") is not None:
        return points(score["value"])
    return f"{points(score['low'])} to {points(score['high'])}"


def usd(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.4f}"


def count(value: int | float | None) -> str:
    return NONE if value is None else f"{value:,.0f}"


def job_problem(code: str) -> tuple[str, str]:
    """Return the meaning and the remedy of a job error code."""
    return JOB_ERRORS.get(code, (f"The job failed with {code}.", "Retry the job."))


def plural(number: int, one: str, many: str) -> str:
    """Format a number with a singular or plural noun."""
    return f"{number:,} {one if number == 1 else many}"


def seconds(value: float | None) -> str:
    if value is None:
        return NONE
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def state_words(code: str | None) -> str:
    return STATES.get(code or "", (code or NONE).replace("_", " "))


def reason_words(code: str | None) -> str:
    return REASONS.get(code or "", (code or "").replace("_", " "))


def remedy_words(code: str | None) -> str:
    return REMEDIES.get(code or "", "Retry the job.")


def is_web_url(url: str) -> bool:
    """Return whether a URL may be shown as a link."""
    return url.lower().startswith(("http://", "https://"))


def signal_words(code: str) -> str:
    return SIGNALS.get(code, code.replace("_", " "))


def jury_words(members: Sequence[Mapping[str, Any]]) -> str:
    """Describe the votes of a jury.

    >>> jury_words([{"model": "a", "outcome": "passed"}, {"model": "b", "outcome": "failed"}])
    '1 of 2 yes: a yes, b no'
    """
    words = {"passed": "yes", "failed": "no"}
    votes = [words.get(member["outcome"], f"no verdict ({reason_words(member.get('reason'))})") for member in members]
    said = ", ".join(f"{member['model']} {vote}" for member, vote in zip(members, votes, strict=True))
    return f"{votes.count('yes')} of {len(members)} yes: {said}"


def copies_words(page: Mapping[str, Any]) -> str:
    """Describe the relation of a page that the agent supplied and our capture of it; empty if there is only a capture.

    >>> copies_words({"source": "supplied", "outcome": "ok", "other_copy": {"outcome": "blocked", "source": "web"}})
    'The agent saw this; we could not open it (blocked).'
    """
    other = page.get("other_copy")
    if other is None:
        return "Supplied by the agent; we did not open it." if page.get("source") == "supplied" else ""
    captured = other if page.get("source") == "supplied" else page
    if captured["outcome"] not in ("ok", "partial"):
        return f"The agent saw this; we could not open it ({state_words(captured['outcome'])})."
    share = other.get("common_5grams")
    if share is None:
        return "The page that the agent supplied is no evidence."
    if share == 1.0:
        return "The agent supplied the same text."
    return f"Page changed since the agent read it, or supplied otherwise: {percent(share)} of the 5-grams are common."


def parse_time(value: str | datetime | None) -> datetime | None:
    """Parse a time of the API; None if it is invalid."""
    if value is None or isinstance(value, datetime):
        return value
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


_WEEK = timedelta(days=7)


def ago(value: str | datetime | None) -> Markup:
    """Format a time relative to now, as an element with the absolute time in UTC as its title."""
    time = parse_time(value)
    if time is None:
        return escape(NONE)
    age = datetime.now(UTC) - time
    utc = time.astimezone(UTC)
    if age > _WEEK:
        text = f"{utc:%Y-%m-%d}"
    elif age >= timedelta(days=1):
        text = f"{plural(age.days, 'day', 'days')} ago"
    elif age >= timedelta(hours=1):
        text = f"{plural(age.seconds // 3600, 'hour', 'hours')} ago"
    else:
        text = f"{age.seconds // 60} min ago" if age >= timedelta(minutes=1) else "just now"
    return Markup('<time data-ago datetime="{}" title="{:%Y-%m-%d %H:%M} UTC">{}</time>').format(
        utc.isoformat(timespec="seconds"), utc, text
    )


def utc_time(value: str | datetime | None) -> str:
    """Format a time to the minute, with the time zone.

    >>> utc_time("2026-11-26T13:02:09+01:00")
    '2026-11-26 12:02 UTC'
    """
    time = parse_time(value)
    return NONE if time is None else f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def duration(start: str | datetime | None, end: str | datetime | None) -> str:
    begin, finish = parse_time(start), parse_time(end)
    return NONE if begin is None or finish is None else seconds((finish - begin).total_seconds())


def breakable(name: str) -> Markup:
    """Escape a name. A long one can break into lines, preferably after punctuation, so that it does not widen a table.

    >>> breakable("bridge_of_the_northern_river")
    Markup('bridge_<wbr>of_<wbr>the_<wbr>northern_<wbr>river')
    """
    return escape(name) if len(name) <= _UNBROKEN else Markup("<wbr>").join(_NAME_PARTS.findall(name))


_UNBROKEN = 24
_NAME_PARTS = re.compile(rf"[^_./@-]{{1,{_UNBROKEN}}}[_./@-]*|[_./@-]+")


def shorten(text: str, max_chars: int = 90) -> str:
    """Put a text on one line, truncated with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()}…"

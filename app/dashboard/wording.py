"""The words and numbers that pages show: plain sentences for codes, short forms for quantities."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

NONE = "\u2013"

STATES: Mapping[str, str] = {
    "passed": "passed",
    "failed": "failed",
    "partial": "partly",
    "skipped": "skipped",
    "not_judged": "not judged",
    "undecided": "undecided",
    "open": "open",
    "initialized": "undecided",
    "queued": "queued",
    "running": "running",
    "succeeded": "done",
    "cancelled": "cancelled",
    "complete": "complete",
    "incomplete": "incomplete",
    "ok": "captured",
    "paused": "paused",
}
"""Codes of outcomes and statuses, as people read them."""

REASONS: Mapping[str, str] = {
    "refuted": "The page was read and does not say so.",
    "no_source": "The claim needs a source, and the answer gives none.",
    "source_gone": "The cited page does not exist.",
    "check_false": "A check made by code came out false.",
    "gated": "Something it depends on did not pass, so it was not looked at.",
    "llm_unavailable": "The model could not be reached.",
    "llm_rejected": "The model's provider refused the request.",
    "llm_output_unusable": "The model's reply could not be used.",
    "no_majority": "Too many votes were lost to be sure of a majority.",
    "capture_failed": "The cited page could not be captured.",
    "capture_blocked": "Something stood before the cited page: a captcha, a sign-in form, a consent wall.",
    "egress_denied": "The cited address is not one that may be fetched.",
    "evidence_corrupt": "The stored page is damaged.",
    "timeout": "It took too long.",
    "budget": "The budget for models was spent.",
    "extraction_failed": "The values it was built from could not be read.",
}

REMEDIES: Mapping[str, str] = {
    "llm_unavailable": "Retry the job once the provider answers again; what was judged is not asked twice.",
    "llm_rejected": "Mend the key or access of the model's provider, then retry the job.",
    "llm_output_unusable": "Retry the job; if it stays so, judge with another model.",
    "no_majority": "Retry the job: only the lost votes are asked again.",
    "capture_failed": "Capture the page again, then retry the job.",
    "capture_blocked": "Open the page, and give its content by hand or capture it again; then retry the job.",
    "egress_denied": "Name the host in ASSAY_EGRESS_ALLOW if it is yours, then retry the job.",
    "evidence_corrupt": "Capture the page again, then retry the job.",
    "timeout": "Retry the job, perhaps with a longer deadline.",
    "budget": "Raise ASSAY_BUDGET_USD, restart, then retry the job.",
    "extraction_failed": "Retry the job; if it stays so, read what was extracted in the result's JSON.",
}

JOB_ERRORS: Mapping[str, tuple[str, str]] = {
    "JUDGE_BUG": ("The task's judge file raised an error.", "Mend the file where the traceback points, then retry."),
    "SCRIPT_LIMIT": ("The judge file took more than it may.", "Mend it, or raise the limit that is named; then retry."),
    "SUITE_DATA": ("The suite's data are missing or damaged.", "Mend what is named, then retry."),
    "BUDGET": ("The money for models is spent.", "Raise the budget that is named; the job goes on by itself."),
    "UNKNOWN_TASK": (
        "The task's judge file is gone.",
        "Put it back in a folder of ASSAY_JUDGES, then retry.",
    ),
    "MODEL_NOT_CONFIGURED": ("The model is not set up.", "Set its provider's key and address, restart, then retry."),
    "BROWSER_UNAVAILABLE": ("No browser starts on the worker.", "Run `assay doctor` there; it names what is missing."),
    "DEADLINE": ("It was not done in time.", "Retry, or raise ASSAY_JOB_DEADLINE_S for answers with many pages."),
    "ATTEMPTS_EXHAUSTED": ("Its workers died again and again.", "Look for the worker's end in its log, then retry."),
    "PROVIDER_PAUSED": (
        "An operator wants the model's provider left alone.",
        "Run `assay providers resume NAME`; the job goes on by itself.",
    ),
    "LLM_REJECTED": (
        "The model's provider refuses every request.",
        "Mend the key; the job goes on by itself.",
    ),
    "INTERNAL": ("A fault of ours stopped it.", "The service's log has the traceback. Retry once it is mended."),
}
"""What a job's error code means, and what to do."""

SIGNALS: Mapping[str, str] = {
    "orders_in_page": "The page's text tries to give orders to the judge.",
    "orders_in_answer": "The answer's text tries to give orders to the judge.",
    "orders_in_claim": "The claim's text tries to give orders to the judge.",
    "orders_in_url": "The source's address tries to give orders to the judge.",
    "answer_says_nothing": "The answer says nothing of its own.",
    "pictures_not_shown": "The model takes no pictures: the claim was judged on the page's text.",
    "page_is_flooded": "The page repeats itself at great length.",
    "page_restates_task": "The page says the task's own words again.",
    "source_is_paste": "The source is a place where anybody may paste text.",
    "source_is_user_content": "The source is a place where anybody may write.",
    "source_is_search": "The source is a list of search results.",
    "source_is_shortener": "The source's address hides where it leads.",
    "source_is_open_redirect": "The source's address leads wherever its writer wants.",
    "source_host_looks_like_another": "The source's host looks like another one.",
    "source_redirects_elsewhere": "The source led to another site.",
    "source_with_credentials": "The source's address pretends to be another one, by a user name in it.",
    "claim_names_what_page_lacks": "The claim names something that the page does not.",
}


def points(value: float | None) -> str:
    """A score or a part of one, 0 to 1."""
    return NONE if value is None else f"{value:.2f}"


def share(value: float | None) -> str:
    """A part of a whole, in percent."""
    return NONE if value is None else f"{100 * value:.3g} %"


def bounded(score: Mapping[str, Any] | None) -> str:
    """A score, or the range in which it lies."""
    if score is None:
        return NONE
    if score.get("value") is not None:
        return points(score["value"])
    return f"{points(score['low'])} to {points(score['high'])}"


def usd(value: float | None) -> str:
    if value is None:
        return "not known"
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.4f}"


def count(value: int | float | None) -> str:
    return NONE if value is None else f"{value:,.0f}"


def many(number: int, one: str, more: str) -> str:
    """A number of things."""
    return f"{number:,} {one if number == 1 else more}"


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


def signal_words(code: str) -> str:
    return SIGNALS.get(code, code.replace("_", " "))


def moment(value: str | datetime | None) -> datetime | None:
    """A time of the API as a value."""
    if value is None or isinstance(value, datetime):
        return value
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def when(value: str | datetime | None) -> str:
    """A time, in UTC to the minute."""
    found = moment(value)
    return NONE if found is None else f"{found.astimezone(UTC):%Y-%m-%d %H:%M}"


def lasted(start: str | datetime | None, end: str | datetime | None) -> str:
    begun, ended = moment(start), moment(end)
    return NONE if begun is None or ended is None else seconds((ended - begun).total_seconds())


def short(text: str, most: int = 90) -> str:
    """A text on one line, cut with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"

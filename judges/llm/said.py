"""Outcome of a call as JSON for the call log: its reply or fault, retries, unusable replies and a shortened page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from judges.errors import LLMError, ShorterPage, UnusableReply
from judges.llm.client import LLMReply
from judges.llm.dialects import SCHEMA_IN_WORDS

CANCELLED_OUTCOME: Final[Mapping[str, Any]] = {"called_off": True}
"""Outcome of a cancelled call. It may or may not have been sent."""

Mask = Callable[[str], str]
"""Redacts secrets in error messages of providers."""


def reply_outcome(reply: LLMReply, mask: Mask) -> dict[str, Any]:
    """Return the outcome of a call with a usable reply."""
    text = reply.text
    if not text and reply.parsed is not None:
        text = reply.parsed.model_dump_json(by_alias=True)
    outcome = {"reply": text, "by": reply.model, "usage": asdict(reply.usage), "cached": reply.cached}
    counted = {"reply": text, "by": reply.model}
    if reply.text_only:
        outcome["text_only"] = True
    if reply.form:
        outcome["form"] = reply.form
    return outcome | _optional_keys(reply.unusable, reply.shorter_page, reply.retried, counted, mask)


def fault_outcome(error: LLMError, mask: Mask) -> dict[str, Any]:
    """Return the outcome of a call without a usable reply, or whose reply does not count."""
    fault = {"error": type(error).__name__, "reason": error.reason, "message": mask(str(error))}
    shorter = error.shorter_page
    counted = {} if shorter is None or shorter.text is None else {"reply": shorter.text, "by": shorter.model}
    outcome = {"fault": fault, "usage": asdict(error.usage)}
    return outcome | _optional_keys(error.unusable, shorter, error.retried, counted, mask)


def page_chars_of(outcome: Mapping[str, Any]) -> int | None:
    """Return the number of characters to which the page was shortened; None if it was not."""
    shorter = outcome.get("shortened")
    return None if shorter is None else int(shorter["page_chars"])


def was_repaired(outcome: Mapping[str, Any]) -> bool:
    """Return whether a repair request was sent."""
    requests = (outcome, outcome.get("shortened", {}))
    return any(each["then"] for part in requests for each in part.get("unusable", ()))


def has_schema_in_words(outcome: Mapping[str, Any]) -> bool:
    """Return whether a request of the call contained its schema in words (the prompt ``schema_words``)."""
    requests = (outcome, outcome.get("shortened", {}))
    forms = [part.get(name, "") for part in requests for name in ("form", "refused_form")]
    forms += [each.get("form", "") for part in requests for each in part.get("unusable", ())]
    return any(SCHEMA_IN_WORDS in form for form in forms)


def _optional_keys(
    unusable: Sequence[UnusableReply],
    shorter: ShorterPage | None,
    retried: Sequence[str],
    last: Mapping[str, Any],
    mask: Mask,
) -> dict[str, Any]:
    """Return the optional keys: failed attempts, unusable replies, and the shortened page.

    ``last`` is the reply to the shortened page. Unusable replies are listed with the request that they belong to.
    """
    found: dict[str, Any] = {"retried": [mask(each) for each in retried]} if retried else {}
    if shorter is None:
        return found | _unusable(unusable, mask)
    second = {"refusal": mask(shorter.refusal), "page_chars": shorter.page_chars, **last}
    if shorter.form:
        second["refused_form"] = shorter.form
    return found | _unusable(shorter.unusable, mask) | {"shortened": second | _unusable(unusable, mask)}


def _unusable(unusable: Sequence[UnusableReply], mask: Mask) -> dict[str, Any]:
    """Return the unusable replies of a call, each with the messages that were added to the request after it."""
    if not unusable:
        return {}
    return {
        "unusable": [
            {
                "kind": each.kind.value,
                "reply": each.text,
                "detail": mask(each.detail),
                "by": each.model,
                "usage": asdict(each.usage),
                "then": [dict(message) for message in each.then],
            }
            | ({"form": each.form} if each.form else {})
            for each in unusable
        ]
    }

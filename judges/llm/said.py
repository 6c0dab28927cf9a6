"""What came of a call, as its record holds it: a reply or a fault, and everything that was said on the way there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from judges.errors import LLMError, ShorterPage, UnusableReply
from judges.llm.client import LLMReply
from judges.llm.dialects import IN_WORDS

CALLED_OFF: Final[Mapping[str, Any]] = {"called_off": True}
"""Of a call whose asker went away before it came to an end. Whether it was sent by then is not known."""

Mask = Callable[[str], str]
"""Takes secrets out of what providers say of a fault."""


def said_in_reply(reply: LLMReply, mask: Mask) -> dict[str, Any]:
    """A call that went well."""
    text = reply.text
    if not text and reply.parsed is not None:
        text = reply.parsed.model_dump_json(by_alias=True)
    said = {"reply": text, "by": reply.model, "usage": asdict(reply.usage), "cached": reply.cached}
    counted = {"reply": text, "by": reply.model}
    if reply.text_only:
        said["text_only"] = True
    if reply.form:
        said["form"] = reply.form
    return said | _on_the_way(reply.unusable, reply.shorter_page, reply.retried, counted, mask)


def said_in_fault(error: LLMError, mask: Mask) -> dict[str, Any]:
    """A call that gave no usable reply, or none that counts."""
    fault = {"error": type(error).__name__, "reason": error.reason, "message": mask(str(error))}
    shorter = error.shorter_page
    counted = {} if shorter is None or shorter.text is None else {"reply": shorter.text, "by": shorter.model}
    said = {"fault": fault, "usage": asdict(error.usage)}
    return said | _on_the_way(error.unusable, shorter, error.retried, counted, mask)


def page_chars_of(said: Mapping[str, Any]) -> int | None:
    """How much of its page a request was put once more with; None where it was not."""
    shorter = said.get("shortened")
    return None if shorter is None else int(shorter["page_chars"])


def was_repaired(said: Mapping[str, Any]) -> bool:
    """Whether the model was told that a reply could not be used."""
    asked = (said, said.get("shortened", {}))
    return any(each["then"] for part in asked for each in part.get("unusable", ()))


def has_schema_in_words(said: Mapping[str, Any]) -> bool:
    """Whether any request of the call carried its schema in words (the prompt ``schema_words``)."""
    asked = (said, said.get("shortened", {}))
    forms = [part.get(name, "") for part in asked for name in ("form", "refused_form")]
    forms += [each.get("form", "") for part in asked for each in part.get("unusable", ())]
    return any(IN_WORDS in form for form in forms)


def _on_the_way(
    unusable: Sequence[UnusableReply],
    shorter: ShorterPage | None,
    retried: Sequence[str],
    last: Mapping[str, Any],
    mask: Mask,
) -> dict[str, Any]:
    """What is only there if it was: attempts that failed, replies that could not be used, a page that was too long.

    ``last`` is the reply to the shorter page. The unusable replies stand with the request to which they were given.
    """
    found: dict[str, Any] = {"retried": [mask(each) for each in retried]} if retried else {}
    if shorter is None:
        return found | _unusable(unusable, mask)
    second = {"refusal": mask(shorter.refusal), "page_chars": shorter.page_chars, **last}
    if shorter.form:
        second["refused_form"] = shorter.form
    return found | _unusable(shorter.unusable, mask) | {"shortened": second | _unusable(unusable, mask)}


def _unusable(unusable: Sequence[UnusableReply], mask: Mask) -> dict[str, Any]:
    """The replies of a call that could not be used, with what was added to the request after each."""
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

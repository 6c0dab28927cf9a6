"""Conversion of a script's arguments into questions: sources, instruction, number of votes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from judges.verifier import DEFAULT_TRIALS
from mind2web2.config import NO_INSTRUCTION, EvaluatorConfig
from mind2web2.utils.misc import normalize_url_markdown
from mind2web2.verification_tree import VerificationNode

_UNSET: Any = object()


class InvalidCall(Exception):
    """Invalid call by the script. Retrying cannot succeed, and it is not a fault of the service.

    ``kind`` is the type of the error in Python's terms.
    """

    def __init__(self, message: str, kind: type[Exception] = ValueError) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """Options for judging one claim. ``trials`` is odd."""

    trials: int
    use_screenshot: bool
    instruction: str | None


def parse_options(
    config: EvaluatorConfig,
    additional_instruction: str | None,
    /,
    *,
    majority_vote: Any = _UNSET,
    num_trials: Any = _UNSET,
    use_screenshot: Any = _UNSET,
    **_: Any,
) -> VerifyOptions:
    """Parse the keyword arguments of ``verify``; unknown ones are ignored.

    Raises:
        InvalidCall: the number of votes is not a positive odd number.
    """
    is_voted = config.default_majority_vote if majority_vote is _UNSET else majority_vote
    trials = 1
    if is_voted:
        trials = (config.default_num_trials if num_trials is _UNSET else num_trials) or DEFAULT_TRIALS
        if not isinstance(trials, int) or trials < 1 or trials % 2 == 0:
            raise InvalidCall(f"num_trials must be odd and positive, not {trials!r}")
    return VerifyOptions(
        trials=trials,
        use_screenshot=bool(config.default_use_screenshot if use_screenshot is _UNSET else use_screenshot),
        instruction=instruction_of(additional_instruction),
    )


def instruction_of(instruction: str | None) -> str | None:
    """Return an additional instruction, or None if it is None, empty or the string "None"."""
    return None if not instruction or instruction == NO_INSTRUCTION else str(instruction)


def sources_of(sources: Any) -> tuple[str, ...] | None:
    """Return the pages for a claim: None for the answer alone; empty if none of the given values is a page.

    Raises:
        InvalidCall: ``sources`` is neither None, a string nor a list.
    """
    if sources is None or sources == []:
        return None
    if isinstance(sources, str):
        return page_addresses([sources])
    if isinstance(sources, list):
        return page_addresses(sources)
    raise InvalidCall(f"sources must be None, a string or a list, not {type(sources).__name__}", TypeError)


def page_addresses(entries: Sequence[Any]) -> tuple[str, ...]:
    """Return the entries that are page addresses, with duplicates, because each is judged."""
    return tuple(entry for entry in entries if isinstance(entry, str) and normalize_url_markdown(entry))


def prerequisites_of(node: Any, extra: Any) -> list[VerificationNode]:
    """Return the extra prerequisites of a node, given as None, one node or several.

    Raises:
        InvalidCall: ``node`` or a prerequisite is not a node, or a node is its own prerequisite.
    """
    if not isinstance(node, VerificationNode):
        raise InvalidCall(f"the node to verify must be a VerificationNode, not {type(node).__name__}", TypeError)
    if extra is None or isinstance(extra, VerificationNode):
        extra = [] if extra is None else [extra]
    if not isinstance(extra, Iterable):
        raise InvalidCall("extra_prerequisites must be a list of nodes", TypeError)
    listed = list(extra)
    for each in listed:
        if not isinstance(each, VerificationNode):
            raise InvalidCall(f"an extra prerequisite must be a VerificationNode, not {type(each).__name__}", TypeError)
        if each is node:
            raise InvalidCall(f"node {node.id!r} cannot be its own prerequisite")
    return listed

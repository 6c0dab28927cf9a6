"""What past results of a judge file tell about its next run. Pure; reads results as they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Result: TypeAlias = Mapping[str, Any]
ClaimKey: TypeAlias = "tuple[str, str]"
"""A claim's text and its instruction."""

PASS_RATE: Final = 0.8
"""How often a claim holds, as long as nothing is known."""
SPLIT_RATE: Final = 0.03
"""How often two votes differ, as long as nothing is known."""
_WORTH: Final = 10
"""How many claims of past runs weigh as much as these two numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The verdict on a claim of the same answer, what it was shown, and what one vote on it read."""

    passed: bool
    evidence: tuple[str, ...]
    prompt: str | None
    input_tokens: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """``verdict_tokens`` and ``extract_tokens`` are written for one request, None: not known.

    ``calls`` are those of each past run, replies that were kept included, and ``calls_of_this`` those of the runs on
    this very answer. ``said`` is known of an answer that was judged before.
    """

    runs: int = 0
    pass_rate: float = PASS_RATE
    split_rate: float = SPLIT_RATE
    verdict_tokens: float | None = None
    extract_tokens: float | None = None
    calls: tuple[int, ...] = ()
    calls_of_this: tuple[int, ...] = ()
    said: Mapping[ClaimKey, Said] = field(default_factory=dict)


def habits_of(results: Iterable[Result], *, script_sha256: str | None, model: str, answer_sha256: str) -> Habits:
    """What the complete ones among ``results`` tell that come from this very judge file."""
    past = [
        one
        for one in results
        if (one.get("judge") or {}).get("script_sha256") == script_sha256 and one.get("status") == "complete"
    ]
    asked = [leaf for one in past for leaf in _asked_leaves(one)]
    voted = [leaf for leaf in asked if len(leaf["votes"]) > 1 and len(leaf.get("sources") or ()) <= 1]
    passed = sum(leaf["outcome"] == "passed" for leaf in asked)
    split = sum(len({vote["result"] for vote in leaf["votes"]}) > 1 for leaf in voted)
    # How much is written hangs on the model; what holds and how often, on the answers.
    same_model = [one for one in past if one.get("model") == model]
    verdicts = [leaf["usage"] for one in same_model for leaf in _asked_leaves(one) if _paid(leaf["usage"])]
    return Habits(
        runs=len(past),
        pass_rate=(passed + _WORTH * PASS_RATE) / (len(asked) + _WORTH),
        split_rate=(split + _WORTH * SPLIT_RATE) / (len(voted) + _WORTH),
        verdict_tokens=_per_call(verdicts),
        extract_tokens=_per_call(list(map(_besides_leaves, filter(_paid_in_full, same_model)))),
        calls=_calls(past),
        calls_of_this=_calls(one for one in past if one.get("answer_sha256") == answer_sha256),
        said=_said(past, answer_sha256, model),
    )


def _calls(results: Iterable[Result]) -> tuple[int, ...]:
    return tuple(one["usage"]["calls"] + one["usage"]["cached_calls"] for one in results if one.get("usage"))


def _said(past: Iterable[Result], answer_sha256: str, model: str) -> dict[ClaimKey, Said]:
    """The last word on each claim. Of several pages nobody knows which said what; that they did not all refuse it is
    enough for the number of calls.
    """
    return {
        (str(leaf.get("claim")), str(leaf.get("instruction") or "")): Said(
            passed=leaf["outcome"] == "passed",
            evidence=tuple(leaf.get("evidence") or ()),
            prompt=leaf.get("prompt"),
            input_tokens=_input(leaf) if result.get("model") == model else None,
        )
        for result in past
        if result.get("answer_sha256") == answer_sha256
        for leaf in _asked_leaves(result)
    }


def _asked_leaves(result: Result) -> Iterator[Mapping[str, Any]]:
    """The leaves that a model has settled."""
    for part in result.get("eval_breakdown") or ():
        yield from (
            leaf
            for leaf in _leaves_below(part["verification_tree"])
            if leaf.get("votes") and leaf.get("usage") and leaf.get("outcome") in ("passed", "failed")
        )


def _leaves_below(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    children = node.get("children") or ()
    if not children:
        yield node
    for child in children:
        yield from _leaves_below(child)


def _paid(usage: Mapping[str, Any]) -> bool:
    return bool(usage["calls"])


def _paid_in_full(result: Result) -> bool:
    return _paid(result["usage"]) and not result["usage"]["cached_calls"]


def _besides_leaves(result: Result) -> dict[str, float]:
    """What a result took besides its verdicts: extractions, and questions of the judge file's own."""
    leaves = list(_asked_leaves(result))
    return {
        name: result["usage"][name] - sum(leaf["usage"][name] for leaf in leaves) for name in ("calls", "output_tokens")
    }


def _per_call(usages: list[Any]) -> float | None:
    calls = sum(usage["calls"] for usage in usages)
    return sum(usage["output_tokens"] for usage in usages) / calls if calls > 0 else None


def _input(leaf: Mapping[str, Any]) -> float | None:
    usage = leaf["usage"]
    is_of_one_page = len(leaf.get("sources") or ()) <= 1
    return usage["input_tokens"] / usage["calls"] if usage["calls"] and is_of_one_page else None

"""Statistics of past results of a judge file, as input of a forecast. Pure; reads results as stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from judges.voting import members_in
from rubrics.result_fields import leaves_of, page_digests_of, script_sha256_of

Result: TypeAlias = Mapping[str, Any]
ClaimKey: TypeAlias = "tuple[str, str]"
"""Text and instruction of a claim."""

PASS_RATE: Final = 0.75
"""Prior share of claims that pass."""
SPLIT_RATE: Final = 0.03
"""Prior share of claims on which two votes differ."""
_PRIOR_WEIGHT: Final = 10
"""Weight of the two priors, in claims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierVerdict:
    """Earlier verdict on a claim of the same answer, with its evidence, prompt and input tokens per vote."""

    passed: bool
    evidence: tuple[str, ...]
    prompt: str | None
    input_tokens: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastResults:
    """Statistics of past results.

    ``verdict_tokens`` and ``extract_tokens`` are mean output tokens per request; None: unknown. ``calls`` are the calls
    of each past run, including cached replies; ``calls_for_answer`` only those of runs on this answer.
    ``earlier_verdicts`` are those on this answer.
    """

    runs: int = 0
    pass_rate: float = PASS_RATE
    split_rate: float = SPLIT_RATE
    verdict_tokens: float | None = None
    extract_tokens: float | None = None
    calls: tuple[int, ...] = ()
    calls_for_answer: tuple[int, ...] = ()
    earlier_verdicts: Mapping[ClaimKey, EarlierVerdict] = field(default_factory=dict)


def past_results_of(
    results: Iterable[Result], *, script_sha256: str | None, model: str, answer_sha256: str
) -> PastResults:
    """Return the statistics of the complete results of this judge file among ``results``."""
    past = [
        result for result in results if script_sha256_of(result) == script_sha256 and result.get("status") == "complete"
    ]
    judged = [leaf for one in past for leaf in _judged_leaves(one)]
    voted = [leaf for leaf in judged if len(leaf["votes"]) > 1 and len(leaf.get("sources") or ()) <= 1]
    passed = sum(leaf["outcome"] == "passed" for leaf in judged)
    split = sum(len({vote["result"] for vote in leaf["votes"]}) > 1 for leaf in voted)
    # A jury sends several times as many requests as a single model.
    as_many = [one for one in past if _members(one.get("model")) == _members(model)]
    # Output length depends on the model; pass rates depend on the answers.
    same_model = [one for one in past if one.get("model") == model]
    verdicts = [leaf["usage"] for one in same_model for leaf in _judged_leaves(one) if _has_calls(leaf["usage"])]
    return PastResults(
        runs=len(past),
        pass_rate=(passed + _PRIOR_WEIGHT * PASS_RATE) / (len(judged) + _PRIOR_WEIGHT),
        split_rate=(split + _PRIOR_WEIGHT * SPLIT_RATE) / (len(voted) + _PRIOR_WEIGHT),
        verdict_tokens=_per_call(verdicts),
        extract_tokens=_per_call(list(map(_extraction_usage, filter(_is_uncached, same_model)))),
        calls=_calls(as_many),
        calls_for_answer=_calls(one for one in as_many if one.get("answer_sha256") == answer_sha256),
        earlier_verdicts=_earlier_verdicts(past, answer_sha256, model),
    )


def _members(model: object) -> int:
    return len(members_in(str(model)))


def _calls(results: Iterable[Result]) -> tuple[int, ...]:
    return tuple(
        result["usage"]["calls"] + result["usage"]["cached_calls"] for result in results if result.get("usage")
    )


def _earlier_verdicts(past: Iterable[Result], answer_sha256: str, model: str) -> dict[ClaimKey, EarlierVerdict]:
    """Return the latest verdict on each claim.

    With several pages it is unknown which page got which verdict. The overall verdict suffices to predict the number of
    calls.
    """
    return {
        (str(leaf.get("claim")), str(leaf.get("instruction") or "")): EarlierVerdict(
            passed=leaf["outcome"] == "passed",
            evidence=page_digests_of(leaf),
            prompt=leaf.get("prompt"),
            input_tokens=_input_tokens_per_vote(leaf) if result.get("model") == model else None,
        )
        for result in past
        if result.get("answer_sha256") == answer_sha256
        for leaf in _judged_leaves(result)
    }


def _judged_leaves(result: Result) -> Iterator[Mapping[str, Any]]:
    """Yield the leaves that a model settled."""
    return (
        leaf
        for leaf in leaves_of(result)
        if leaf.get("votes") and leaf.get("usage") and leaf.get("outcome") in ("passed", "failed")
    )


def _has_calls(usage: Mapping[str, Any]) -> bool:
    return bool(usage["calls"])


def _is_uncached(result: Result) -> bool:
    return _has_calls(result["usage"]) and not result["usage"]["cached_calls"]


def _extraction_usage(result: Result) -> dict[str, float]:
    """Return calls and output tokens outside of verdicts: extractions and free requests of the judge file."""
    leaves = list(_judged_leaves(result))
    return {
        name: result["usage"][name] - sum(leaf["usage"][name] for leaf in leaves) for name in ("calls", "output_tokens")
    }


def _per_call(usages: list[Any]) -> float | None:
    calls = sum(usage["calls"] for usage in usages)
    return sum(usage["output_tokens"] for usage in usages) / calls if calls > 0 else None


def _input_tokens_per_vote(leaf: Mapping[str, Any]) -> float | None:
    usage = leaf["usage"]
    has_one_page = len(leaf.get("sources") or ()) <= 1
    return usage["input_tokens"] / usage["calls"] if usage["calls"] and has_one_page else None

"""Comparison of a result with an earlier one: which leaves were reused, and why the others were judged again. Pure.

Reuse happens in the reply cache (``judges.llm.cached``): a vote is reused if the hash of all its inputs is known. This
module only explains the outcome to readers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from cache.urls import canonical_key
from judges.analysis.overrides import judged_leaves
from judges.llm.providers import LEXICAL
from rubrics.tree_json import script_sha256_of

Result: TypeAlias = Mapping[str, Any]
_SHOWN_BODIES: Final = ("text", "links", "screenshot-")
_JUDGED: Final = ("passed", "failed")


class Cause(StrEnum):
    """Reason why a leaf was judged again: the change since the earlier result."""

    ANSWER = "answer"
    """The text of the answer. It gives claims their context, so it changes every claim."""
    PAGE = "page"
    """A page that the leaf is judged by has another content, or became readable."""
    SCRIPT = "script"
    """The task file asks another question."""
    PROMPT = "prompt"
    """A prompt has another version."""
    MODEL = "model"
    """Another model, provider, address or parameters."""
    NEW = "new"
    """None of these, but the earlier result has no verdict on the leaf."""
    NOT_CACHED = "not_kept"
    """Nothing changed, but the replies are no longer in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _IndexedResult:
    """One of the two results, indexed for comparison."""

    result: Result
    leaves: Mapping[str, Mapping[str, Any]]
    pages: Mapping[str, Any]
    prompts: Mapping[str, str]

    @classmethod
    def of(cls, result: Result) -> _IndexedResult:
        pages = [page for page in result.get("pages") or () if isinstance(page.get("url"), str)]
        return cls(
            result=result,
            leaves={key: leaf.data for key, leaf in judged_leaves(result).items()},
            pages={canonical_key(page["url"]): _shown(page) for page in pages},
            prompts=dict(_version(prompt) for prompt in result.get("prompts") or ()),
        )


def with_rejudged(result: Result, earlier: Result | None) -> dict[str, Any]:
    """Return ``result`` with a ``rejudged`` summary, and ``rejudged`` in each leaf.

    All are null without an ``earlier`` result. A leaf's value is also null if no model was asked: code decided it, or a
    gate was closed.
    """
    now, before = _IndexedResult.of(result), None if earlier is None else _IndexedResult.of(earlier)
    rejudged: dict[int, dict[str, Any] | None] = {}
    for place, leaf in now.leaves.items():
        is_judged = before is not None and bool(leaf.get("votes"))
        rejudged[id(leaf)] = _compare_leaf(place, leaf, now, before) if is_judged and before is not None else None
    summary = None if earlier is None else _summary(earlier, [one for one in rejudged.values() if one is not None])
    if not rejudged:  # a script that builds its result without our evaluator may have no tree
        return {**result, "rejudged": summary}
    parts = [
        {**part, "verification_tree": _with_rejudged(part["verification_tree"], rejudged)}
        for part in result["eval_breakdown"]
    ]
    return {**result, "eval_breakdown": parts, "rejudged": summary}


def _summary(earlier: Result, leaves: list[dict[str, Any]]) -> dict[str, Any]:
    reused = sum(leaf["reused"] for leaf in leaves)
    causes = Counter(cause for leaf in leaves for cause in leaf["because"])
    return {
        "of": earlier.get("id"),
        "reused": reused,
        "again": len(leaves) - reused,
        "because": {cause.value: causes[cause.value] for cause in Cause if causes[cause.value]},
    }


def _compare_leaf(place: str, leaf: Mapping[str, Any], now: _IndexedResult, before: _IndexedResult) -> dict[str, Any]:
    """Return whether all votes on a leaf were reused, and the changes that affect it.

    Reused votes can have another outcome than the earlier result if its inputs changed or it has no verdict.
    """
    earlier = before.leaves.get(place)
    question_changed = earlier is None or any(
        leaf.get(name) != earlier.get(name) for name in ("claim", "instruction", "sources")
    )
    causes = set(_known_causes(leaf, now, before, question_changed=question_changed))
    scripts = [script_sha256_of(side.result) for side in (now, before)]
    script_changed = None not in scripts and scripts[0] != scripts[1]
    if script_changed and question_changed:
        causes.add(Cause.SCRIPT)
    if leaf.get("model") == LEXICAL:
        reused = not causes  # deterministic: equal inputs give equal verdicts without a request
    else:
        reused = not (leaf.get("usage") or {}).get("calls", 0) and all(vote["cached"] for vote in leaf["votes"])
    is_new = leaf.get("outcome") in _JUDGED and (earlier is None or earlier.get("outcome") not in _JUDGED)
    if not causes and (is_new or not reused):
        causes.add(_fallback_cause(earlier, script_changed=script_changed and not reused))
    return {"reused": reused, "because": [cause.value for cause in Cause if cause in causes]}


def _known_causes(
    leaf: Mapping[str, Any], now: _IndexedResult, before: _IndexedResult, *, question_changed: bool
) -> Iterator[Cause]:
    """Yield the known changes that affect a leaf, except the script."""
    if _differs("answer_sha256", now, before):
        yield Cause.ANSWER
    keys = [canonical_key(url) for url in leaf.get("sources") or ()]
    if any(key in now.pages and key in before.pages and now.pages[key] != before.pages[key] for key in keys):
        yield Cause.PAGE
    name, version = _version(leaf.get("prompt") or "@")
    used = {name: version}
    if question_changed:
        used |= {other: now.prompts[other] for other in now.prompts if other.startswith("extract")}
    if any(before.prompts.get(prompt, version) != version for prompt, version in used.items()):
        yield Cause.PROMPT
    if _differs("model", now, before) or _differs("asked_in", now, before):
        yield Cause.MODEL


def _fallback_cause(earlier: Mapping[str, Any] | None, *, script_changed: bool) -> Cause:
    """Return the cause if no other change is known."""
    if script_changed:
        return Cause.SCRIPT  # the task description or the number of votes may have changed
    return Cause.NOT_CACHED if earlier is not None and earlier.get("outcome") in _JUDGED else Cause.NEW


def _differs(name: str, now: _IndexedResult, before: _IndexedResult) -> bool:
    """Return whether both results have the field and its values differ.

    Results of the public toolkit or of earlier releases may lack it.
    """
    one, other = now.result.get(name), before.result.get(name)
    return one is not None and other is not None and one != other


def _version(prompt: str) -> tuple[str, str]:
    name, _, version = prompt.partition("@")
    return name, version


def _shown(page: Mapping[str, Any]) -> Any:
    """Return the hashes of the parts of a page that a judge sees, or None if the page is not evidence."""
    bodies = page.get("bodies") or {}
    shown_bodies = {role: sha256 for role, sha256 in bodies.items() if role.startswith(_SHOWN_BODIES)}
    return shown_bodies if page.get("outcome") in ("ok", "partial") else None


def _with_rejudged(node: Mapping[str, Any], rejudged: Mapping[int, Any]) -> dict[str, Any]:
    """Return a copy of a tree with ``rejudged`` in each leaf."""
    children = node.get("children") or ()
    if not children:
        return {**node, "rejudged": rejudged.get(id(node))}
    return {**node, "children": [_with_rejudged(child, rejudged) for child in children]}

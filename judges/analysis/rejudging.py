"""What became of each leaf of a new result beside an earlier one: reused, or judged again and why. Pure.

Reuse itself happens where replies are kept (``judges.llm.cached``): a vote is reused when the hash of everything that
decides it was met before. Here results are only compared, so that a reader is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from cache.urls import canonical_key
from judges.llm.providers import LEXICAL
from rubrics.addresses import Addresses

Result: TypeAlias = Mapping[str, Any]
_SHOWN: Final = ("text", "links", "screenshot-")
_SAID: Final = ("passed", "failed")


class Cause(StrEnum):
    """Why a leaf was judged again: what of it had changed since the earlier result."""

    ANSWER = "answer"
    """The answer's text: it tells a judge what a claim refers to, so every claim of it is another question."""
    PAGE = "page"
    """A page that the leaf is judged by shows something else, or can be read now."""
    SCRIPT = "script"
    """The judge file asks something else."""
    PROMPT = "prompt"
    """A prompt has another version."""
    MODEL = "model"
    """Another model, or another way to ask it: provider, address, parameters."""
    NEW = "new"
    """None of these, but the earlier result has no verdict on the leaf."""
    NOT_KEPT = "not_kept"
    """Nothing has changed, but the replies to the same questions were not to be had any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One of two results, ready to be compared."""

    result: Result
    leaves: Mapping[str, Mapping[str, Any]]
    pages: Mapping[str, Any]
    prompts: Mapping[str, str]

    @classmethod
    def of(cls, result: Result) -> _Side:
        pages = [page for page in result.get("pages") or () if isinstance(page.get("url"), str)]
        return cls(
            result=result,
            leaves={place: leaf for place, leaf in _placed(result)},
            pages={canonical_key(page["url"]): _shown(page) for page in pages},
            prompts=dict(_version(prompt) for prompt in result.get("prompts") or ()),
        )


def compared(result: Result, earlier: Result | None) -> dict[str, Any]:
    """``result`` with a ``rejudged`` of its own and one in each leaf; all null where there is no ``earlier`` result.

    A leaf's is null, too, where no model was asked: code decided it, or a gate was closed.
    """
    now, before = _Side.of(result), None if earlier is None else _Side.of(earlier)
    said: dict[int, dict[str, Any] | None] = {}
    for place, leaf in now.leaves.items():
        asked = before is not None and bool(leaf.get("votes"))
        said[id(leaf)] = _of_leaf(place, leaf, now, before) if asked and before is not None else None
    summary = None if earlier is None else _summary(earlier, [one for one in said.values() if one is not None])
    if not said:  # a script that makes its dict without our evaluator may have no tree
        return {**result, "rejudged": summary}
    parts = [{**part, "verification_tree": _with(part["verification_tree"], said)} for part in result["eval_breakdown"]]
    return {**result, "eval_breakdown": parts, "rejudged": summary}


def _summary(earlier: Result, leaves: list[dict[str, Any]]) -> dict[str, Any]:
    again = [leaf for leaf in leaves if not leaf["reused"]]
    causes = Counter(cause for leaf in again for cause in leaf["because"])
    return {
        "of": earlier.get("id"),
        "reused": len(leaves) - len(again),
        "again": len(again),
        "because": {cause.value: causes[cause.value] for cause in Cause if causes[cause.value]},
    }


def _of_leaf(place: str, leaf: Mapping[str, Any], now: _Side, before: _Side) -> dict[str, Any]:
    """Whether every vote on a leaf was there already, and what had changed about it."""
    earlier = before.leaves.get(place)
    asks_else = earlier is None or any(
        leaf.get(name) != earlier.get(name) for name in ("claim", "instruction", "sources")
    )
    causes = set(_changed(leaf, now, before, asks_else=asks_else))
    script_changed = None not in (_script(now), _script(before)) and _script(now) != _script(before)
    if script_changed and asks_else:
        causes.add(Cause.SCRIPT)
    if leaf.get("model") == LEXICAL:
        reused = not causes  # it computes: nothing is asked, and the same comes out
    else:
        reused = not (leaf.get("usage") or {}).get("calls", 0) and all(vote["cached"] for vote in leaf["votes"])
    if not reused and not causes:
        causes.add(_without_change(earlier, script_changed=script_changed))
    return {"reused": reused, "because": [cause.value for cause in Cause if cause in causes]}


def _changed(leaf: Mapping[str, Any], now: _Side, before: _Side, *, asks_else: bool) -> Iterator[Cause]:
    """What has certainly changed of what a leaf is judged by, the script aside."""
    if _differs("answer_sha256", now, before):
        yield Cause.ANSWER
    keys = [canonical_key(url) for url in leaf.get("sources") or ()]
    if any(key in now.pages and key in before.pages and now.pages[key] != before.pages[key] for key in keys):
        yield Cause.PAGE
    name, version = _version(leaf.get("prompt") or "@")
    others = (name for name in now.prompts if asks_else and name.startswith("extract"))
    if before.prompts.get(name, version) != version or any(_moved(other, now, before) for other in others):
        yield Cause.PROMPT
    if _differs("model", now, before) or _differs("asked_in", now, before):
        yield Cause.MODEL


def _without_change(earlier: Mapping[str, Any] | None, *, script_changed: bool) -> Cause:
    """Why a leaf was judged again of which nothing that results tell has changed."""
    if script_changed:
        return Cause.SCRIPT  # its task, or how many votes it wants
    return Cause.NOT_KEPT if earlier is not None and earlier.get("outcome") in _SAID else Cause.NEW


def _moved(prompt: str, now: _Side, before: _Side) -> bool:
    return prompt in before.prompts and before.prompts[prompt] != now.prompts[prompt]


def _differs(name: str, now: _Side, before: _Side) -> bool:
    """Whether both say something, and not the same; results of the public toolkit, or of earlier releases, may not."""
    one, other = now.result.get(name), before.result.get(name)
    return one is not None and other is not None and one != other


def _script(side: _Side) -> Any:
    return (side.result.get("judge") or {}).get("script_sha256")


def _version(prompt: str) -> tuple[str, str]:
    name, _, version = prompt.partition("@")
    return name, version


def _shown(page: Mapping[str, Any]) -> Any:
    """Of a page what a judge is shown, by hash; None where it is none, for whatever reason."""
    bodies = page.get("bodies") or {}
    shown = {role: sha256 for role, sha256 in bodies.items() if role.startswith(_SHOWN)}
    return shown if page.get("outcome") in ("ok", "partial") else None


def _placed(result: Result) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The leaves of a result, each under a name of its own."""
    for part in result.get("eval_breakdown") or ():
        addresses = Addresses()
        for node in _walk(part["verification_tree"]):
            place = addresses.key(str(node["id"]))
            if not node.get("children"):
                yield place, node


def _walk(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A node and everything below it, parents before children."""
    yield node
    for child in node.get("children") or ():
        yield from _walk(child)


def _with(node: Mapping[str, Any], said: Mapping[int, Any]) -> dict[str, Any]:
    """A copy of a tree whose leaves say what became of them."""
    children = node.get("children") or ()
    if not children:
        return {**node, "rejudged": said[id(node)]}
    return {**node, "children": [_with(child, said) for child in children]}

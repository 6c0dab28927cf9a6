"""Nodes of stored results, and fields that moved between schema versions. Pure functions.

Version 1 had the script and the parameters of requests under ``judge``, and the digests of a leaf's evidence under
``evidence``. Results may come from anywhere, so nothing about their shape is assumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def script_of(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``name``, ``version``, ``kind`` and ``sha256`` of the judge script; a missing value is left out.

    Results of the public toolkit have only the hash.
    """
    script = _mapping(result.get("script"))
    if script:
        return script
    judge = _mapping(result.get("judge"))
    known = {name: judge[name] for name in ("name", "version", "kind") if name in judge}
    sha256 = judge.get("script_sha256", result.get("eval_script_sha256"))
    return known if sha256 is None else {**known, "sha256": sha256}


def script_sha256_of(result: Mapping[str, Any]) -> Any:
    """Return the SHA-256 (hex) of the judge script; None if the result does not contain it."""
    return script_of(result).get("sha256")


def parameters_of(result: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the parameters of model requests by role; None if the result does not contain them."""
    parameters = result.get("parameters", _mapping(result.get("judge")).get("parameters"))
    return parameters if isinstance(parameters, Mapping) else None


def members_of(result: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Return the members of the jury that judged a result, with their parameters; empty if one model judged it."""
    members = _mapping(_mapping(result.get("judge")).get("jury")).get("members")
    return tuple(map(_mapping, members)) if isinstance(members, list | tuple) else ()


def page_digests_of(leaf: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the SHA-256 digests (hex) of the page content that a leaf was judged on."""
    digests = leaf.get("page_digests", leaf.get("evidence"))
    return tuple(map(str, digests)) if isinstance(digests, list | tuple) else ()


def may_lack_parts(result: Mapping[str, Any]) -> bool:
    """Return whether a fault may have kept the judge from declaring parts of the tree. The score is then open."""
    return result.get("extraction_error") is not None or result.get("cut_short") is not None


def nodes_below(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a node and its descendants, parents before children. Trees can be deeper than the recursion limit."""
    nodes = [node]
    while nodes:
        current = nodes.pop()
        yield current
        nodes += reversed(current.get("children") or ())


def leaves_of(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the leaves of a result's trees, in order."""
    for part in result.get("eval_breakdown") or ():
        yield from (node for node in nodes_below(part["verification_tree"]) if not node.get("children"))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

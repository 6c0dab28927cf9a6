"""Cited URLs of a result, with the number of leaves that cite each and the cost of judging them.

The rows are extracted from the result's JSON when it is stored, so lists of URLs need not parse whole results.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.captures import key_digest
from app.storage.tables import result_sources
from app.storage.text_cleanup import storable_text
from cache.urls import canonical_key

_OPEN = frozenset({"not_judged", "undecided"})


def result_source_rows(result_id: str, body: str) -> list[dict[str, Any]]:
    """Return one row per page that the answer or a leaf cites. Blocking: large results take time to parse.

    ``usd`` is None if the price of a leaf's model is unknown.
    """
    result = json.loads(body)
    found: dict[str, dict[str, Any]] = {}
    for page in result.get("pages") or ():
        _row(found, result_id, str(page["url"]))
    for part in result.get("eval_breakdown") or ():
        for leaf in _leaves(part["verification_tree"]):
            usage = leaf.get("usage") or {}
            # Two spellings of the same URL in one leaf count once.
            for url in {canonical_key(url): url for url in map(str, leaf.get("sources") or ())}.values():
                row = _row(found, result_id, url)
                row["leaves"] += 1
                row["open_leaves"] += leaf.get("outcome") in _OPEN
                row["calls"] += int(usage.get("calls") or 0)
                usd = usage.get("usd") if usage else 0.0
                row["usd"] = None if usd is None or row["usd"] is None else row["usd"] + float(usd)
    return list(found.values())


async def insert_sources(connection: AsyncConnection, result_id: str, body: str) -> None:
    """Store the cited URLs of a result. Call in the transaction that stores the result."""
    rows = await asyncio.to_thread(result_source_rows, result_id, body)
    if rows:
        await connection.execute(insert(result_sources), rows)


def _row(found: dict[str, dict[str, Any]], result_id: str, url: str) -> dict[str, Any]:
    digest = key_digest(canonical_key(url))
    if digest not in found:
        found[digest] = {
            "result_id": result_id,
            "key_sha256": digest,
            "url": storable_text(url),
            "leaves": 0,
            "open_leaves": 0,
            "calls": 0,
            "usd": 0.0,
        }
    return found[digest]


def _leaves(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the leaves below a node. Iterative, because the tree can be deeper than the recursion limit."""
    stack = [node]
    while stack:
        current = stack.pop()
        children = current.get("children") or ()
        if children:
            stack.extend(children)
        else:
            yield current

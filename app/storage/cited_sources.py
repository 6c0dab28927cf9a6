"""Which URLs the leaves of a result cite, how many do, and what judging those leaves cost: read from a result's JSON
once, when it is stored, so that no list ever has to open whole results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.captures import key_digest
from app.storage.storable import storable
from app.storage.tables import result_sources
from cache.urls import canonical_key

_OPEN = frozenset({"not_judged", "undecided"})


def rows_of(result_id: str, body: str) -> list[dict[str, Any]]:
    """The rows of a result: one for each page that its answer or a leaf cites, none twice. Blocks for a large one.

    ``usd`` is None where the price of a leaf's model is not known.
    """
    result = json.loads(body)
    found: dict[str, dict[str, Any]] = {}
    for page in result.get("pages") or ():
        _row(found, result_id, str(page["url"]))
    for part in result.get("eval_breakdown") or ():
        for leaf in _leaves(part["verification_tree"]):
            usage = leaf.get("usage") or {}
            # Two spellings of one page in one leaf are one source.
            for url in {canonical_key(url): url for url in map(str, leaf.get("sources") or ())}.values():
                row = _row(found, result_id, url)
                row["leaves"] += 1
                row["open_leaves"] += leaf.get("outcome") in _OPEN
                row["calls"] += int(usage.get("calls") or 0)
                usd = usage.get("usd") if usage else 0.0
                row["usd"] = None if usd is None or row["usd"] is None else row["usd"] + float(usd)
    return list(found.values())


async def insert_sources(connection: AsyncConnection, result_id: str, body: str) -> None:
    """Store what a result cites; in the transaction that stores the result."""
    rows = await asyncio.to_thread(rows_of, result_id, body)
    if rows:
        await connection.execute(insert(result_sources), rows)


def _row(found: dict[str, dict[str, Any]], result_id: str, url: str) -> dict[str, Any]:
    digest = key_digest(canonical_key(url))
    if digest not in found:
        found[digest] = {
            "result_id": result_id,
            "key_sha256": digest,
            "url": storable(url),
            "leaves": 0,
            "open_leaves": 0,
            "calls": 0,
            "usd": 0.0,
        }
    return found[digest]


def _leaves(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The leaves below a node of a result's tree, which may be as deep as its author liked."""
    below = [node]
    while below:
        at = below.pop()
        children = at.get("children") or ()
        if children:
            below.extend(children)
        else:
            yield at

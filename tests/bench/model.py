"""Stand-in model of the benchmarks in a separate process: fixed latency, and a tally.

It supports a claim if the page, or without a page the answer, contains it. Comparisons of two texts pass at a fixed
rate.

``python -m tests.bench.model --delay 0.3`` prints its URL; ``GET /tally`` returns the counts of requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any
from urllib.request import urlopen

from tests.bench.inputs import PASS_RATE, SEED
from tests.bench.prefixes import PrefixCache
from tests.standin.call import Call
from tests.standin.http import HttpRequest, response
from tests.standin.llm import StandInLLM
from tests.standin.rules import is_sampled, no_quotes

ROOT = Path(__file__).resolve().parents[2]
_ENTRY = re.compile(r"^\d+\. \*\*(?P<name>.+?)\*\* (?P<rest>.*)$", re.MULTILINE)
_LINK = re.compile(r"\]\((https?://[^)\s]+)\)")
_ASKED_FOR = re.compile(r"number (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counts of requests to a model."""

    requests: int
    sent_tokens: float
    fresh_tokens: float
    fresh_tokens_until_answered: float


class BenchModel(StandInLLM):
    """Stand-in model that does not store requests: thousands of them, with pictures, would fill the memory."""

    def __init__(self, *, delay_s: float) -> None:
        super().__init__(rule=is_supported, delay_s=delay_s, quotes=no_quotes)
        self._prefixes = PrefixCache()

    async def _answer(self, request: HttpRequest, writer: asyncio.StreamWriter) -> bytes:
        if request.path == "/tally":
            return response(200, self._tally())
        return await super()._answer(request, writer)

    async def _reply(self, call: Call, writer: asyncio.StreamWriter) -> bytes:
        digests = self._prefixes.add_request(call)
        reply = await super()._reply(call, writer)
        self._prefixes.add_reply(digests)
        self.calls[call.index] = Call(index=call.index, model=call.model, messages=(), params={})
        return reply

    def _content(self, call: Call) -> Any:
        return extraction_reply(call) if _is_extraction(call) else super()._content(call)

    def _tally(self) -> dict[str, Any]:
        prefixes = self._prefixes
        return {
            "requests": len(self.calls),
            "sent_tokens": prefixes.sent,
            "fresh_tokens": prefixes.fresh,
            "fresh_tokens_until_answered": prefixes.fresh_until_answered,
        }


def is_supported(call: Call) -> bool:
    """Return whether the page contains the claim. Without a page, claims that the answer contains and a fixed share of
    the others are supported."""
    if call.page:
        return call.claim in " ".join(call.page.split())
    return call.claim in call.block("answer") or is_sampled(call.claim, seed=SEED, rate=PASS_RATE)


def _is_extraction(call: Call) -> bool:
    return call.schema is not None and "result" not in call.schema.get("properties", {})


@dataclass(frozen=True, slots=True)
class Entry:
    """One numbered entry of an answer, or the heading of a page."""

    name: str
    urls: tuple[str, ...] = ()


def parse_entries(answer: str) -> list[Entry]:
    return [Entry(found["name"], tuple(_LINK.findall(found["rest"]))) for found in _ENTRY.finditer(answer)]


def extraction_reply(call: Call) -> Any:
    """Return the reply to an extraction: the page's heading, the requested entry, or all entries."""
    assert call.schema is not None
    if call.page:
        heading = call.page.partition("\n")[0].lstrip("# ")
        return _value(call.schema, "", [Entry(heading)], call.schema)
    entries = parse_entries(call.block("answer"))
    asked = _ASKED_FOR.search(call.block("request"))
    if asked is not None:
        place = int(asked[1]) - 1
        entries = entries[place : place + 1]
    return _value(call.schema, "", entries, call.schema)


def _value(schema: Mapping[str, Any], name: str, entries: Sequence[Entry], root: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        return _value(root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], name, entries, root)
    if "anyOf" in schema:
        return _value(schema["anyOf"][0], name, entries, root) if entries else None
    if schema.get("type") == "object":
        return {field: _value(each, field, entries, root) for field, each in schema["properties"].items()}
    if schema.get("type") == "array":
        return _list(schema["items"], name, entries, root)
    if not entries:
        return ""
    urls = entries[0].urls
    if "url" in name:
        return urls[0] if urls else ""
    return entries[0].name if name in {"name", "title", "heading"} else f"the {name} of {entries[0].name}"


def _list(items: Mapping[str, Any], name: str, entries: Sequence[Entry], root: Mapping[str, Any]) -> list[Any]:
    if "url" in name:
        return [url for entry in entries for url in entry.urls]
    return [_value(items, name.removesuffix("s"), [entry], root) for entry in entries]


@dataclass(frozen=True, slots=True)
class RunningModel:
    """Running model. ``base_url`` is for clients."""

    base_url: str

    def tally(self) -> Tally:
        with urlopen(f"{self.base_url.removesuffix('/v1')}/tally", timeout=30) as reply:
            return Tally(**json.loads(reply.read()))


@contextmanager
def running_model(*, delay_s: float) -> Iterator[RunningModel]:
    """Run a model in a separate process during the block."""
    command = [sys.executable, "-m", "tests.bench.model", "--delay", str(delay_s)]
    process = Popen(command, cwd=ROOT, stdout=PIPE, text=True)
    try:
        assert process.stdout is not None
        yield RunningModel(process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait()


async def _serve(delay_s: float) -> None:
    model = BenchModel(delay_s=delay_s)
    await model.start()
    print(model.base_url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--delay", type=float, default=0.0, help="seconds of latency for each reply")
    given = options.parse_args()
    asyncio.run(_serve(given.delay))

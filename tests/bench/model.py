"""Stand-in model of the benchmarks in a separate process: fixed latency, verdicts by a seeded rule, and a tally.

``python -m tests.bench.model --delay 0.3`` prints its URL; ``GET /tally`` returns the counts of requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any
from urllib.request import urlopen

from tests.bench.filling import filled
from tests.bench.prefixes import PrefixCache
from tests.standin.call import Call
from tests.standin.http import HttpRequest, response
from tests.standin.llm import StandInLLM
from tests.standin.rules import first_sentence_quotes, no_quotes, seeded_rule

SEED = 0
PASS_RATE = 0.8
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counts of requests to a model. ``needed``: one request per extraction, two equal votes per other question."""

    requests: int
    needed: int
    sent_bytes: int
    fresh_bytes: int
    fresh_bytes_until_answered: int


class BenchModel(StandInLLM):
    """Stand-in model that does not store requests: thousands of them, with pictures, would fill the memory."""

    def __init__(self, *, delay_s: float, quotes: bool) -> None:
        quoting = first_sentence_quotes if quotes else no_quotes
        super().__init__(rule=seeded_rule(SEED, PASS_RATE), delay_s=delay_s, quotes=quoting)
        self._prefixes = PrefixCache()
        self._questions: Counter[tuple[bytes, bool]] = Counter()

    async def _answer(self, request: HttpRequest, writer: asyncio.StreamWriter) -> bytes:
        if request.path == "/tally":
            return response(200, self._tally())
        return await super()._answer(request, writer)

    async def _reply(self, call: Call, writer: asyncio.StreamWriter) -> bytes:
        marks = self._prefixes.arrived(call)
        self._questions[marks[-1], _is_extraction(call)] += 1
        reply = await super()._reply(call, writer)
        self._prefixes.answered(marks)
        self.calls[call.index] = Call(index=call.index, model=call.model, messages=(), params={})
        return reply

    def _content(self, call: Call) -> Any:
        return filled(call) if _is_extraction(call) else super()._content(call)

    def _tally(self) -> dict[str, int]:
        prefixes = self._prefixes
        return {
            "requests": len(self.calls),
            "needed": sum(1 if is_extraction else 2 for _, is_extraction in self._questions),
            "sent_bytes": prefixes.sent,
            "fresh_bytes": prefixes.fresh,
            "fresh_bytes_until_answered": prefixes.fresh_until_answered,
        }


def _is_extraction(call: Call) -> bool:
    return call.schema is not None and "result" not in call.schema.get("properties", {})


@dataclass(frozen=True, slots=True)
class RunningModel:
    """Running model. ``base_url`` is for clients."""

    base_url: str

    def tally(self) -> Tally:
        with urlopen(f"{self.base_url.removesuffix('/v1')}/tally", timeout=30) as reply:
            return Tally(**json.loads(reply.read()))


@contextmanager
def running_model(*, delay_s: float, quotes: bool = False) -> Iterator[RunningModel]:
    """Run a model in a separate process during the block. ``quotes``: supported verdicts quote the page."""
    command = [sys.executable, "-m", "tests.bench.model", "--delay", str(delay_s), *(["--quotes"] if quotes else [])]
    process = Popen(command, cwd=ROOT, stdout=PIPE, text=True)
    try:
        assert process.stdout is not None
        yield RunningModel(process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait()


async def _serve(delay_s: float, quotes: bool) -> None:
    model = BenchModel(delay_s=delay_s, quotes=quotes)
    await model.start()
    print(model.base_url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--delay", type=float, default=0.0, help="seconds of latency for each reply")
    options.add_argument("--quotes", action="store_true", help="quote the page for each supported claim")
    given = options.parse_args()
    asyncio.run(_serve(given.delay, given.quotes))

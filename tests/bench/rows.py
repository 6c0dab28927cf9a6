"""The rows of the table: what is measured for each, the public toolkit's published figure, and our target.

The toolkit's figures were measured once on two cores with the same amount of work: 10 scripts, 23 answers, 256 pages,
its default limits, a stand-in model. Ours come from the machine this runs on, so the ratio says more than the number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

from app.settings import Settings
from tests.bench import captures, lookups
from tests.bench.judging import NO_LIMIT, Run, measure
from tests.fakes.sandbox import installed_browser

MIB = 1024 * 1024
FULL = Run()
TINY = Run(tiny=True)
UNLIMITED = Run(tiny=True, delay_s=1.0, max_tasks=NO_LIMIT, max_answers=NO_LIMIT, max_llm=NO_LIMIT)
AT_ONCE = Run(route="toolkit", tiny=True, delay_s=0.0)
MANY = Run(answers=300, delay_s=0.05)
THOUSAND = Run(answers=1000, delay_s=0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. ``met`` is None where there is no target; ``note`` says what else was seen."""

    what: str
    toolkit: str
    target: str
    ours: str
    met: bool | None
    note: str = ""


Measuring: TypeAlias = Callable[[], Iterator[Row]]

run_once = cache(measure)
"""Rows share their runs."""


def has_look_ahead() -> bool:
    """Whether this version can ask ahead of a script."""
    return "look_ahead" in Settings.model_fields


def cpu() -> Iterator[Row]:
    for run, toolkit_ms, target_ms, pages in ((FULL, 58, 8, "full-size"), (TINY, 7.7, 4, "tiny")):
        ours = run_once(run).cpu_ms_per_request
        direct = run_once(replace(run, route="toolkit")).cpu_ms_per_request
        yield Row(
            what=f"CPU per LLM call, {pages} pages",
            toolkit=f"{toolkit_ms} ms",
            target=f"<= {target_ms} ms",
            ours=f"{ours:.1f} ms",
            met=ours <= target_ms,
            note=f"without the service, by evaluate_task: {direct:.1f} ms",
        )


def loop() -> Iterator[Row]:
    seen = run_once(FULL).outcome
    worst, p99 = (1000 * each for each in seen.late_s)
    held = " / ".join(f"{1000 * each:.0f}" for each in seen.held_s)
    yield Row(
        what="event loop blocked: worst / p99",
        toolkit="1030 / 759 ms",
        target="<= 100 / 20 ms",
        ours=f"{worst:.0f} / {p99:.0f} ms",
        met=worst <= 100 and p99 <= 20,
        note=f"of that in computing of its own {held} ms",
    )


def wall() -> Iterator[Row]:
    for run, toolkit_s, target_s, pages in ((FULL, 47.7, 19.0, "full-size"), (TINY, 25.5, None, "tiny")):
        yield _wall(f"wall, 23 answers, 300 ms, {pages} pages", run, toolkit_s, target_s)
    if has_look_ahead():
        yield from _looked_ahead("wall, 300 ms, full-size pages, look-ahead", FULL, 47.7, 13.0)


def unlimited() -> Iterator[Row]:
    yield _wall("wall without limits, 1000 ms, tiny pages", UNLIMITED, 30.6, 17.0)
    if has_look_ahead():
        yield from _looked_ahead("wall without limits, 1000 ms, look-ahead", UNLIMITED, 30.6, 17.0)


def at_once() -> Iterator[Row]:
    most = run_once(AT_ONCE).outcome.most_at_once
    yield Row(
        what="LLM calls in flight at zero latency",
        toolkit="1",
        target=f"the limit: {AT_ONCE.max_llm}",
        ours=str(most),
        met=most == AT_ONCE.max_llm,
    )


def prefix() -> Iterator[Row]:
    tally = run_once(FULL).tally
    share, answered = tally.fresh_bytes / tally.sent_bytes, tally.fresh_bytes_until_answered / tally.sent_bytes
    yield Row(
        what="input bytes no prefix cache can reuse",
        toolkit="all",
        target="<= 30 %",
        ours=f"{share:.0%}",
        met=share <= 0.3,
        note=f"{answered:.0%} if votes asked together do not serve each other",
    )


def requests() -> Iterator[Row]:
    tally, nodes = run_once(FULL).tally, run_once(FULL).outcome.nodes
    yield Row(
        what=f"LLM requests for the same trees ({nodes} nodes)",
        toolkit="466-537",
        target=f"<= {tally.needed}",
        ours=str(tally.requests),
        met=tally.requests <= tally.needed,
        note="the target is what these trees need: 1 for each extraction, 2 equal votes for each claim and page",
    )


def memory() -> Iterator[Row]:
    for run, toolkit_mib, target_mib in ((FULL, 213, 150), (MANY, 518, 200)):
        ours = run_once(run).outcome.memory_bytes / MIB
        yield Row(
            what=f"peak memory above start, {run.answers} answers",
            toolkit=f"{toolkit_mib} MiB",
            target=f"<= {target_mib} MiB",
            ours=f"{ours:.0f} MiB",
            met=ours <= target_mib,
        )


def thousand() -> Iterator[Row]:
    seen = run_once(THOUSAND)
    minutes = seen.outcome.wall_s / 60
    yield Row(
        what="1,000 answers, 50 ms, full-size pages, one process",
        toolkit="24-28 min",
        target="<= 4 min",
        ours=f"{minutes:.1f} min",
        met=minutes <= 4,
        note=f"peak memory above start {seen.outcome.memory_bytes / MIB:.0f} MiB, {seen.tally.requests} requests",
    )


def lookup() -> Iterator[Row]:
    ways = (
        ("mind2web2 CacheFileSys", "1.6 / 87008 / 211249 us", lookups.of_the_public_layout),
        ("cache.urls", "", lookups.of_our_key),
    )
    for name, toolkit, way in ways:
        seen = way()
        figures = (seen.exact_us, seen.variant_us, seen.miss_us)
        yield Row(
            what=f"page look-up at 10,000 URLs, {name}: exact / utm variant / miss",
            toolkit=toolkit,
            target="<= 20 us each",
            ours=f"{' / '.join(f'{figure:.1f}' for figure in figures)} us",
            met=max(figures) <= 20,
        )


def capture() -> Iterator[Row]:
    if installed_browser() is None:
        yield Row(what="capture", toolkit="76.6 pages/min", target=">= 200", ours="no browser here", met=None)
        return
    seen = captures.measure()
    yield Row(
        what=f"capture, {captures.PAGES} plain local pages, {captures.AT_ONCE} at once",
        toolkit="76.6 pages/min",
        target=">= 200 pages/min",
        ours=f"{seen.per_minute:.0f} pages/min",
        met=seen.per_minute >= 200 and seen.good == captures.PAGES,
        note=f"{seen.browser}, with its start; peak memory of all processes {seen.peak_bytes / MIB:.0f} MiB",
    )


def _wall(what: str, run: Run, toolkit_s: float, target_s: float | None) -> Row:
    ours = run_once(run).outcome.wall_s
    return Row(
        what=what,
        toolkit=f"{toolkit_s} s",
        target="" if target_s is None else f"<= {target_s:g} s",
        ours=f"{ours:.1f} s",
        met=None if target_s is None else ours <= target_s,
        note=f"{ours / toolkit_s:.2f} of the toolkit's",
    )


def _looked_ahead(what: str, run: Run, toolkit_s: float, target_s: float) -> Iterator[Row]:
    plain, ahead = run_once(run), run_once(replace(run, look_ahead=True))
    more = ahead.tally.requests / plain.tally.requests - 1
    equal = ahead.outcome.trees == plain.outcome.trees
    row = _wall(what, replace(run, look_ahead=True), toolkit_s, target_s)
    yield replace(
        row,
        target=f"{row.target}, <= 5 % more calls",
        ours=f"{row.ours}, {more:+.1%} calls",
        met=row.met and more <= 0.05 and equal,
        note=f"trees {'equal' if equal else 'DIFFER'}; {row.note}",
    )


ROWS: Mapping[str, Measuring] = MappingProxyType(
    {
        "cpu": cpu,
        "loop": loop,
        "wall": wall,
        "unlimited": unlimited,
        "at-once": at_once,
        "prefix": prefix,
        "requests": requests,
        "memory": memory,
        "lookup": lookup,
        "capture": capture,
        "thousand": thousand,
    }
)
LONG = frozenset({"thousand"})
"""Measured only by name or with ``--full``."""

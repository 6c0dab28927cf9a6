"""Rows for queue and workers, which the public toolkit does not have."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench import durability
from tests.bench.row import Row

KILLS = 1000
QUEUED = 100_000
WORKERS = 3


def kills() -> Iterator[Row]:
    bag = durability.kill(KILLS)
    yield Row(
        what=f"workers killed or put to sleep while they judge {bag.jobs} answers",
        toolkit="",
        target="0 lost, 0 duplicate, 0 wrong",
        ours=f"{len(bag.lost)} lost, {len(bag.duplicate)} duplicate, {len(bag.wrong)} wrong",
        met=not bag.faults,
        note=f"{bag.kills} kills and {bag.sleeps} sleeps in {bag.seconds / 60:.1f} min; {bag.calls} calls for"
        f" {bag.needed_calls} needed{'; ' + '; '.join(bag.faults[:3]) if bag.faults else ''}",
    )


def leases() -> Iterator[Row]:
    seen = durability.lease(QUEUED)
    yield Row(
        what=f"lease of a job at {QUEUED:,} queued, p99",
        toolkit="",
        target="<= 20 ms",
        ours=f"{1000 * seen.p99_s:.1f} ms",
        met=seen.p99_s <= 0.02,
        note=f"median {1000 * seen.p50_s:.1f} ms",
    )


def scaling() -> Iterator[Row]:
    rates = durability.scale([1, WORKERS])
    share = rates[WORKERS] / (WORKERS * rates[1])
    yield Row(
        what=f"{WORKERS} workers against one, model latency 1 s",
        toolkit="",
        target=f">= 0.9 x {WORKERS}",
        ours=f"{share:.2f} x {WORKERS}",
        met=share >= 0.9,
        note=f"{rates[1]:.2f} and {rates[WORKERS]:.2f} answers/s",
    )

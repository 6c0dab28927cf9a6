"""F8: random kills, and some sleeps past the lease: nothing lost, doubled, wrong or paid for twice.

`make bench` does the same a thousand times.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from app.storage.database import Database
from tests.faults.killing import CLAIMS, VOTES, Hunt

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(900)]

KILLS, JOBS = 60, 20


async def test_random_kills_leave_no_trace(database: Database, tmp_path: Path):
    bag = await Hunt(database, tmp_path, seed=20).run(kills=KILLS, wave=JOBS, within_s=880)
    print(bag)
    assert bag.faults == []
    assert bag.kills >= 40 and bag.jobs >= JOBS
    assert bag.kills + bag.sleeps == KILLS
    assert bag.calls >= bag.jobs * CLAIMS * VOTES

"""F8: hundreds of random kills, and some sleeps past the lease: nothing lost, doubled, wrong or paid for twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.storage.database import Database
from tests.faults.killing import CLAIMS, VOTES, Hunt

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(900)]

KILLS, JOBS = 220, 50


async def test_two_hundred_random_kills_over_fifty_jobs_leave_no_trace(database: Database, tmp_path: Path):
    bag = await Hunt(database, tmp_path, seed=20).run(kills=KILLS, wave=JOBS, within_s=880)
    print(bag)
    assert bag.faults == []
    assert bag.kills >= 150 and bag.jobs >= JOBS
    assert bag.kills + bag.sleeps == KILLS
    assert bag.calls >= bag.jobs * CLAIMS * VOTES

"""F8: random kills and pauses past the lease; no result is lost, duplicated, wrong or paid for twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.storage.database import Database
from tests.faults.killing import CLAIMS, VOTES, RandomKillTest

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(900)]

KILLS, JOBS = 16, 8


async def test_f8_random_kills_leave_all_results_correct(database: Database, tmp_path: Path):
    outcome = await RandomKillTest(database, tmp_path, seed=20).run(kills=KILLS, wave=JOBS, within_s=880)
    print(outcome)
    assert outcome.faults == []
    assert outcome.kills >= 10 and outcome.jobs >= JOBS
    assert outcome.kills + outcome.pauses == KILLS
    assert outcome.calls >= outcome.jobs * CLAIMS * VOTES

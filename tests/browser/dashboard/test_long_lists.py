"""Lists of ten thousand results: pages of bounded size, which need neither the results nor their trees."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from sqlalchemy import text

from tests.browser.dashboard.conftest import OpenDashboard, Served

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

RESULTS, PER_PAGE, TASKS = 10_000, 100, 50
ROWS = (
    """INSERT INTO answers (sha256, text, words) VALUES ('0', 'An answer', 2)""",
    """INSERT INTO submissions (id, owner, agent, task_id, metadata, created_at)
    SELECT 'sub_' || n, 'local', 'crowd', 'task_' || n % :tasks, '{}', now() FROM generate_series(1, :results) n""",
    """INSERT INTO jobs (id, submission_id, owner, position, agent, task_id, answer_name, answer_sha256, status,
        attempts_allowed, created_at, finished_at, result_id)
    SELECT 'job_' || n, 'sub_' || n, 'local', 0, 'crowd', 'task_' || n % :tasks, 'answer_' || n / :tasks || '.md', '0',
        'succeeded', 3, now(), now(), 'res_' || lpad(n::text, 26, '0') FROM generate_series(1, :results) n""",
    """INSERT INTO results (id, job_id, attempt, owner, agent, task_id, answer_name, status, final_score, body,
        created_at, score_low, score_high, model)
    SELECT 'res_' || lpad(n::text, 26, '0'), 'job_' || n, 1, 'local', 'crowd', 'task_' || n % :tasks,
        'answer_' || n / :tasks || '.md', 'complete', 0.5, 'not read', now(), 0.5, 0.5, 'lexical'
    FROM generate_series(1, :results) n""",
)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def crowded(open_dashboard: OpenDashboard) -> AsyncIterator[Served]:
    """Service with an agent of ten thousand results, whose bodies are unreadable."""
    async with open_dashboard(workers=0) as running:
        async with running.service.database.begin() as connection:
            for rows in ROWS:
                wanted = {
                    name: value for name, value in {"results": RESULTS, "tasks": TASKS}.items() if f":{name}" in rows
                }
                await connection.execute(text(rows), wanted)
        yield running


async def test_response_has_a_bounded_size(crowded: Served):
    for path in ("/agents/crowd", "/", "/jobs", "/tasks", "/search?q=answer_7"):
        response = await crowded.http.get(path)
        assert response.status_code == 200
        assert len(response.content) < 300_000

"""Store the model of results and the run of jobs, so that lists need neither parse results nor join submissions."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_BATCH = 100
_READ = sa.text("SELECT id, body FROM results WHERE id > :after ORDER BY id LIMIT :batch")
_WRITE = sa.text("UPDATE results SET model = :model WHERE id = :id")


def upgrade() -> None:
    op.add_column("results", sa.Column("model", sa.Text))
    connection, after = op.get_bind(), ""
    while rows := connection.execute(_READ, {"after": after, "batch": _BATCH}).all():
        after = rows[-1].id
        connection.execute(_WRITE, [{"id": row.id, "model": _model(row.body)} for row in rows])
    op.alter_column("results", "model", nullable=False)
    op.add_column("jobs", sa.Column("run", sa.Text))
    op.execute("UPDATE jobs SET run = submissions.run FROM submissions WHERE submissions.id = jobs.submission_id")


def _model(body: str) -> str:
    result = json.loads(body)
    return str(result.get("model") or result.get("judge_model") or "unknown")


def downgrade() -> None:
    op.drop_column("jobs", "run")
    op.drop_column("results", "model")

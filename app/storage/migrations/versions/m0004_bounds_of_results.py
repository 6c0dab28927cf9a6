"""Store the bounds of each score, so that lists of results need not parse the results."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_BATCH = 100
_READ = sa.text("SELECT id, body, final_score FROM results WHERE id > :after ORDER BY id LIMIT :batch")
_WRITE = sa.text("UPDATE results SET score_low = :low, score_high = :high WHERE id = :id")


def upgrade() -> None:
    op.add_column("results", sa.Column("score_low", sa.Float))
    op.add_column("results", sa.Column("score_high", sa.Float))
    connection, after = op.get_bind(), ""
    while rows := connection.execute(_READ, {"after": after, "batch": _BATCH}).all():
        after = rows[-1].id
        bounds = [(row.id, json.loads(row.body).get("score"), row.final_score) for row in rows]
        connection.execute(
            _WRITE,
            [
                {"id": result_id, "low": score["low"], "high": score["high"]}
                if isinstance(score, dict)
                else {"id": result_id, "low": final, "high": final}
                for result_id, score, final in bounds
            ],
        )
    op.alter_column("results", "score_low", nullable=False)
    op.alter_column("results", "score_high", nullable=False)


def downgrade() -> None:
    op.drop_column("results", "score_high")
    op.drop_column("results", "score_low")

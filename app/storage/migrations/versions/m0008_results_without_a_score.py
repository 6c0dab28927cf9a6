"""Results without a score, because no part of the rubric applies to the answer."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for column in ("score_low", "score_high"):
        op.alter_column("results", column, nullable=True)


def downgrade() -> None:
    op.execute("UPDATE results SET score_low = 0, score_high = 0 WHERE score_low IS NULL")
    for column in ("score_low", "score_high"):
        op.alter_column("results", column, nullable=False)

"""Add suite runs and steps, and the kind of jobs and results."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("jobs", "results"):
        op.add_column(table, sa.Column("kind", sa.Text, nullable=False, server_default=sa.text("'answer'")))
    op.create_table(
        "suite_runs",
        sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("identity", sa.Text, nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
    )
    op.create_table(
        "suite_steps",
        sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("element_acc", sa.Float),
        sa.Column("action_f1", sa.Float),
        sa.Column("step_acc", sa.Float),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("trace", sa.Text, nullable=False),
    )

"""Create the tables of suite runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "suite_runs",
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("identity", sa.Text, nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id"),
        if_not_exists=True,  # a development version of the core created this table
    )
    op.create_table(
        "suite_steps",
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("element_acc", sa.Float),
        sa.Column("action_f1", sa.Float),
        sa.Column("step_acc", sa.Float),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("trace", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "position"),
        if_not_exists=True,  # a development version of the core created this table
    )

"""Create the tables of step sessions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "suite_sessions",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("suite", sa.Text, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("tasks", sa.Text, nullable=False),
        sa.Column("steps_total", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("turn", sa.Integer, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("suite_sessions_by_owner", "suite_sessions", ["owner", "suite", "id"])
    op.create_table(
        "suite_session_steps",
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("trace", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["suite_sessions.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("session_id", "number"),
    )

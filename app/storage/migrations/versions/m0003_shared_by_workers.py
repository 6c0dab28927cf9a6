"""Add shared state of workers (checkpoints, budgets, slots, provider status) and job priorities."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("submissions", sa.Column("priority", sa.Integer, nullable=False, server_default=sa.text("0")))
    op.add_column("submissions", sa.Column("budget_usd", sa.Float))
    op.add_column("jobs", sa.Column("priority", sa.Integer, nullable=False, server_default=sa.text("0")))
    op.add_column("jobs", sa.Column("paused_purse", sa.Text))
    op.add_column("jobs", sa.Column("paused_limit_usd", sa.Float))
    op.create_index("jobs_paused", "jobs", ["id"], postgresql_where=sa.text("status = 'queued' AND stage = 'paused'"))
    op.create_table("installation", sa.Column("name", sa.Text, primary_key=True), sa.Column("value", sa.Text))
    op.create_table(
        "checkpoints",
        sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("reply", sa.Text, nullable=False),
        sa.Column("counted", sa.Boolean, nullable=False, server_default=sa.text("false")),
    )
    op.create_table(
        "purses",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("spent_usd", sa.Float, nullable=False, server_default=sa.text("0")),
    )
    op.create_table(
        "purse_holds",
        sa.Column("purse", sa.Text, primary_key=True),
        sa.Column("holder", sa.Text, primary_key=True),
        sa.Column("usd", sa.Float, nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "shared_slots",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("holder", sa.Text, primary_key=True),
        sa.Column("held", sa.Integer, nullable=False),
        sa.Column("wanted", sa.Integer, nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "model_lines",
        sa.Column("circuit", sa.Text, primary_key=True),
        sa.Column("model", sa.Text, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("refusal", sa.Text),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("probed_at", sa.DateTime(timezone=True), nullable=False),
    )

"""Add model usage per day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "model_usage",
        sa.Column("day", sa.Date, primary_key=True),
        *(sa.Column(name, sa.Text, primary_key=True) for name in ("owner", "agent", "task_id", "model", "role")),
        sa.Column("calls", sa.BigInteger, nullable=False),
        sa.Column("input_tokens", sa.BigInteger, nullable=False),
        sa.Column("output_tokens", sa.BigInteger, nullable=False),
        sa.Column("usd", sa.Float, nullable=False),
        sa.Column("unpriced_calls", sa.BigInteger, nullable=False),
    )

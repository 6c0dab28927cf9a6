"""Add pauses of model providers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "provider_pauses",
        sa.Column("provider", sa.Text, primary_key=True),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("paused_by", sa.Text, nullable=False),
        sa.Column("paused_at", sa.DateTime(timezone=True), nullable=False),
    )

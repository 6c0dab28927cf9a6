"""Whose turn it is to capture a page or to visit a host, and pages that are found by where they ended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Captures made before keep it empty: they are found by the address that was asked for, as they were.
    op.add_column("captures", sa.Column("final_key_sha256", sa.Text))
    op.create_index("captures_by_final_key", "captures", ["final_key_sha256", "captured_at"])
    op.create_table(
        "capture_turns",
        sa.Column("key_sha256", sa.Text, primary_key=True),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "host_visits",
        sa.Column("host", sa.Text, primary_key=True),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=False),
    )

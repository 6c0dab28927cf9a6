"""Add capture locks, host pacing, and the lookup of captures by their final URL."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # NULL for existing captures, which are still found by the requested URL.
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

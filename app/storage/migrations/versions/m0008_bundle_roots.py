"""Add the root hashes of the bundles that contain each result."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "bundle_roots",
        sa.Column("result_id", sa.Text, sa.ForeignKey("results.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("root_sha256", sa.Text, primary_key=True),
        sa.Column("content", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )

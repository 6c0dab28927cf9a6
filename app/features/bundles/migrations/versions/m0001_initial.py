"""Create the table of the bundles that contain a result."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "bundle_roots",
        sa.Column("result_id", sa.Text, nullable=False),
        sa.Column("root_sha256", sa.Text, nullable=False),
        sa.Column("content", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["result_id"], ["results.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("result_id", "root_sha256"),
        if_not_exists=True,  # a development version of the core created this table
    )

"""Record whose answers a capture and a page change are used for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("captures", sa.Column("owner", sa.Text))
    op.add_column("page_changes", sa.Column("for_owner", sa.Text))


def downgrade() -> None:
    op.drop_column("page_changes", "for_owner")
    op.drop_column("captures", "owner")

"""Add overrides: append-only human verdicts on single leaves."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "overrides",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("result_id", sa.Text, sa.ForeignKey("results.id", ondelete="CASCADE"), nullable=False),
        sa.Column("leaf", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("model", sa.Text),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("key_owner", sa.Text, nullable=False),
        sa.Column("withdraws", sa.Text),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint("withdraws", name="withdrawn_once"),
    )
    op.create_index("overrides_by_result", "overrides", ["result_id", "id"])
    op.execute(
        "CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'rows of % are added and never changed', TG_TABLE_NAME; END $$"
    )
    op.execute(
        "CREATE TRIGGER overrides_never_change BEFORE UPDATE ON overrides FOR EACH ROW EXECUTE FUNCTION refuse_change()"
    )

"""Store the owner of webhook deliveries, so that due ones of each owner are found without reading those of others."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_PENDING = sa.text("state = 'pending'")
_QUEUE = """
CREATE OR REPLACE FUNCTION queue_webhook_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO webhook_deliveries (webhook_id, {columns}job_id, event, snapshot, created_at, next_at)
    SELECT webhooks.id, {values}NEW.id, 'job.' || NEW.status, row_to_json(NEW)::text, now(), now()
    FROM webhooks
    WHERE webhooks.owner = NEW.owner
      AND (webhooks.submission_id IS NULL OR webhooks.submission_id = NEW.submission_id)
      AND webhooks.disabled_at IS NULL;
    RETURN NULL;
END
$$
"""


def upgrade() -> None:
    op.add_column("webhook_deliveries", sa.Column("owner", sa.Text))
    op.execute("UPDATE webhook_deliveries each SET owner = webhooks.owner FROM webhooks WHERE webhooks.id = webhook_id")
    op.alter_column("webhook_deliveries", "owner", nullable=False)
    op.drop_index("webhook_deliveries_due", "webhook_deliveries")
    op.create_index("webhook_deliveries_due", "webhook_deliveries", ["owner", "next_at"], postgresql_where=_PENDING)
    op.execute(_QUEUE.format(columns="owner, ", values="NEW.owner, "))


def downgrade() -> None:
    op.execute(_QUEUE.format(columns="", values=""))
    op.drop_index("webhook_deliveries_due", "webhook_deliveries")
    op.create_index("webhook_deliveries_due", "webhook_deliveries", ["next_at"], postgresql_where=_PENDING)
    op.drop_column("webhook_deliveries", "owner")

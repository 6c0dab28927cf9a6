"""Webhooks, their deliveries, and the trigger that queues a delivery when a job ends."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_QUEUE = """
CREATE FUNCTION queue_webhook_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO webhook_deliveries (webhook_id, job_id, event, snapshot, created_at, next_at)
    SELECT webhooks.id, NEW.id, 'job.' || NEW.status, row_to_json(NEW)::text, now(), now()
    FROM webhooks
    WHERE webhooks.owner = NEW.owner
      AND (webhooks.submission_id IS NULL OR webhooks.submission_id = NEW.submission_id)
      AND webhooks.disabled_at IS NULL;
    RETURN NULL;
END
$$
"""
_TRIGGER = """
CREATE TRIGGER jobs_queue_webhook_deliveries AFTER UPDATE OF status ON jobs FOR EACH ROW
WHEN (OLD.status IS DISTINCT FROM NEW.status AND NEW.status IN ('succeeded', 'failed', 'cancelled'))
EXECUTE FUNCTION queue_webhook_deliveries()
"""


def upgrade() -> None:
    time = sa.DateTime(timezone=True)
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("submission_id", sa.Text, sa.ForeignKey("submissions.id", ondelete="CASCADE")),
        sa.Column("created_at", time, nullable=False),
        sa.Column("disabled_at", time),
        sa.Column("disabled_reason", sa.Text),
    )
    op.create_index("webhooks_by_owner", "webhooks", ["owner", "id"])
    op.create_index("webhooks_by_submission", "webhooks", ["submission_id"])
    op.create_table(
        "webhook_deliveries",
        sa.Column("position", sa.BigInteger, sa.Identity(), primary_key=True),
        sa.Column(
            "id",
            sa.Text,
            nullable=False,
            server_default=sa.text("('msg_'::text || replace((gen_random_uuid())::text, '-'::text, ''::text))"),
        ),
        sa.Column("webhook_id", sa.Text, sa.ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
        sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.id", ondelete="CASCADE")),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("snapshot", sa.Text),
        sa.Column("state", sa.Text, nullable=False, server_default=sa.text("'pending'")),
        sa.Column("attempts", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("status_code", sa.Integer),
        sa.Column("error", sa.Text),
        sa.Column("created_at", time, nullable=False),
        sa.Column("next_at", time),
        sa.Column("delivered_at", time),
    )
    op.create_index("webhook_deliveries_by_webhook", "webhook_deliveries", ["webhook_id", "position"])
    op.create_index("webhook_deliveries_by_job", "webhook_deliveries", ["job_id"])
    op.create_index(
        "webhook_deliveries_due", "webhook_deliveries", ["next_at"], postgresql_where=sa.text("state = 'pending'")
    )
    op.execute(_QUEUE)
    op.execute(_TRIGGER)


def downgrade() -> None:
    op.execute("DROP TRIGGER jobs_queue_webhook_deliveries ON jobs")
    op.execute("DROP FUNCTION queue_webhook_deliveries")
    op.drop_table("webhook_deliveries")
    op.drop_table("webhooks")

"""Create all tables of the first release."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import op

from app.storage.database import revision_of

# Until the first release, a change of the schema is made here.
revision = revision_of(Path(__file__))
down_revision = None
branch_labels = None
depends_on = None

_APPEND_ONLY = ("overrides", "page_changes")
_QUEUE = """
CREATE FUNCTION queue_webhook_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO webhook_deliveries (webhook_id, owner, job_id, event, snapshot, created_at, next_at)
    SELECT webhooks.id, NEW.owner, NEW.id, 'job.' || NEW.status, row_to_json(NEW)::text, now(), now()
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
    op.create_table(
        "answers",
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("words", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("sha256"),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "budget_reservations",
        sa.Column("budget_id", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("amount", sa.Float, nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("budget_id", "holder"),
    )
    op.create_table(
        "budgets",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("spent", sa.Float, server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "capture_locks",
        sa.Column("key_sha256", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("key_sha256"),
    )
    op.create_table(
        "captures",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("key_sha256", sa.Text, nullable=False),
        sa.Column("final_key_sha256", sa.Text),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("captured_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("owner", sa.Text),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("captures_by_final_key", "captures", ["final_key_sha256", "captured_at"])
    op.create_index("captures_by_key", "captures", ["key_sha256", "captured_at"])
    op.create_table(
        "host_visits",
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("host"),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("response", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("owner", "key"),
    )
    op.create_table(
        "installation",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("value", sa.Text),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "llm_cache",
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("entry", sa.Text, nullable=False),
        sa.Column("bytes", sa.Integer, nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "model_usage",
        sa.Column("day", sa.Date, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("calls", sa.BigInteger, nullable=False),
        sa.Column("input_tokens", sa.BigInteger, nullable=False),
        sa.Column("output_tokens", sa.BigInteger, nullable=False),
        sa.Column("usd", sa.Float, nullable=False),
        sa.Column("unpriced_calls", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("day", "owner", "agent", "task_id", "model", "role"),
    )
    op.create_table(
        "page_changes",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("key_sha256", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("to_url", sa.Text),
        sa.Column("task_id", sa.Text),
        sa.Column("page_id", sa.Text),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("key_owner", sa.Text, nullable=False),
        sa.Column("for_owner", sa.Text),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("undoes", sa.Text),
        sa.ForeignKeyConstraint(
            ["undoes"],
            ["page_changes.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("undoes", name="undone_once"),
    )
    op.create_index("page_changes_by_key", "page_changes", ["key_sha256", "id"])
    op.create_index("page_changes_by_task", "page_changes", ["task_id", "id"])
    op.create_table(
        "provider_pauses",
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("paused_by", sa.Text, nullable=False),
        sa.Column("paused_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("provider"),
    )
    op.create_table(
        "provider_status",
        sa.Column("credential_id", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("rejection", sa.Text),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("probed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("credential_id", "model"),
    )
    op.create_table("queue_migrations", sa.Column("name", sa.Text, nullable=False), sa.PrimaryKeyConstraint("name"))
    op.create_table(
        "shared_slots",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("held", sa.Integer, nullable=False),
        sa.Column("wanted", sa.Integer, nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", "holder"),
    )
    op.create_table(
        "submissions",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("model", sa.Text),
        sa.Column("run", sa.Text),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("priority", sa.Integer, server_default=sa.text("0"), nullable=False),
        sa.Column("budget_usd", sa.Float),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("submission_id", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("answer_name", sa.Text, nullable=False),
        sa.Column("answer_sha256", sa.Text, nullable=False),
        sa.Column("model", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("stage", sa.Text),
        sa.Column("pages_done", sa.Integer, server_default=sa.text("0"), nullable=False),
        sa.Column("pages_total", sa.Integer, server_default=sa.text("0"), nullable=False),
        sa.Column("leaves_done", sa.Integer, server_default=sa.text("0"), nullable=False),
        sa.Column("leaves_total", sa.Integer, server_default=sa.text("0"), nullable=False),
        sa.Column("queue_id", sa.BigInteger),
        sa.Column("attempts", sa.Integer, server_default=sa.text("0"), nullable=False),
        sa.Column("attempts_allowed", sa.Integer, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("result_id", sa.Text),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True)),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("revision", sa.BigInteger, server_default=sa.text("1"), nullable=False),
        sa.Column("priority", sa.Integer, server_default=sa.text("0"), nullable=False),
        sa.Column("paused_budget_id", sa.Text),
        sa.Column("paused_limit", sa.Float),
        sa.Column("kind", sa.Text, server_default=sa.text("'answer'"), nullable=False),
        sa.Column("stored_pages", sa.Boolean, server_default=sa.text("false"), nullable=False),
        sa.Column("run", sa.Text),
        sa.ForeignKeyConstraint(
            ["answer_sha256"],
            ["answers.sha256"],
        ),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submissions.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("jobs_by_agent", "jobs", ["agent", "task_id", "id"])
    op.create_index("jobs_by_owner", "jobs", ["owner", "id"])
    op.create_index("jobs_by_status", "jobs", ["status", "id"])
    op.create_index("jobs_by_submission", "jobs", ["submission_id"])
    op.create_index("jobs_paused", "jobs", ["id"], postgresql_where=sa.text("status = 'queued' AND stage = 'paused'"))
    op.create_index("jobs_waiting", "jobs", ["id"], postgresql_where=sa.text("status = 'queued'"))
    op.create_table(
        "page_change_captures",
        sa.Column("change_id", sa.Text, nullable=False),
        sa.Column("capture_id", sa.Text, nullable=False),
        sa.Column("key_sha256", sa.Text, nullable=False),
        sa.Column("effect", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["change_id"], ["page_changes.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("change_id", "capture_id"),
    )
    op.create_index("page_change_captures_by_key", "page_change_captures", ["key_sha256"])
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("submission_id", sa.Text),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("disabled_at", sa.DateTime(timezone=True)),
        sa.Column("disabled_reason", sa.Text),
        sa.ForeignKeyConstraint(["submission_id"], ["submissions.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("webhooks_by_owner", "webhooks", ["owner", "id"])
    op.create_index("webhooks_by_submission", "webhooks", ["submission_id"])
    op.create_table(
        "checkpoints",
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("reply", sa.Text, nullable=False),
        sa.Column("counted", sa.Boolean, server_default=sa.text("false"), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "key"),
    )
    op.create_table(
        "results",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("answer_name", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("final_score", sa.Float, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.Text, server_default=sa.text("'answer'"), nullable=False),
        sa.Column("score_low", sa.Float),
        sa.Column("score_high", sa.Float),
        sa.Column("model", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"],
            ["jobs.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("job_id", "attempt", name="one_result_per_attempt"),
    )
    op.create_index("results_by_agent", "results", ["agent", "task_id", "id"])
    op.create_index("results_by_owner", "results", ["owner", "id"])
    op.create_table(
        "suite_runs",
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("identity", sa.Text, nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id"),
    )
    op.create_table(
        "suite_steps",
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("element_acc", sa.Float),
        sa.Column("action_f1", sa.Float),
        sa.Column("step_acc", sa.Float),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("trace", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "position"),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("position", sa.BigInteger, sa.Identity(always=False), nullable=False),
        sa.Column(
            "id",
            sa.Text,
            server_default=sa.text("('msg_'::text || replace((gen_random_uuid())::text, '-'::text, ''::text))"),
            nullable=False,
        ),
        sa.Column("webhook_id", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("job_id", sa.Text),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("snapshot", sa.Text),
        sa.Column("state", sa.Text, server_default=sa.text("'pending'"), nullable=False),
        sa.Column("attempts", sa.Integer, server_default=sa.text("0"), nullable=False),
        sa.Column("status_code", sa.Integer),
        sa.Column("error", sa.Text),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True)),
        sa.Column("delivered_at", sa.DateTime(timezone=True)),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["webhook_id"], ["webhooks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("position"),
    )
    op.create_index("webhook_deliveries_by_job", "webhook_deliveries", ["job_id"])
    op.create_index("webhook_deliveries_by_webhook", "webhook_deliveries", ["webhook_id", "position"])
    op.create_index(
        "webhook_deliveries_due",
        "webhook_deliveries",
        ["owner", "next_at"],
        postgresql_where=sa.text("state = 'pending'"),
    )
    op.create_table(
        "overrides",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("result_id", sa.Text, nullable=False),
        sa.Column("leaf", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("model", sa.Text),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("key_owner", sa.Text, nullable=False),
        sa.Column("withdraws", sa.Text),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["result_id"], ["results.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("withdraws", name="withdrawn_once"),
    )
    op.create_index("overrides_by_result", "overrides", ["result_id", "id"])
    op.create_table(
        "result_pages",
        sa.Column("result_id", sa.Text, nullable=False),
        sa.Column("capture_id", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(
            ["result_id"],
            ["results.id"],
        ),
        sa.PrimaryKeyConstraint("result_id", "capture_id"),
    )
    op.create_index("result_pages_by_capture", "result_pages", ["capture_id"])
    op.create_table(
        "result_sources",
        sa.Column("result_id", sa.Text, nullable=False),
        sa.Column("key_sha256", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("leaves", sa.Integer, nullable=False),
        sa.Column("open_leaves", sa.Integer, nullable=False),
        sa.Column("calls", sa.Integer, nullable=False),
        sa.Column("usd", sa.Float),
        sa.ForeignKeyConstraint(["result_id"], ["results.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("result_id", "key_sha256"),
    )
    op.create_index("result_sources_by_key", "result_sources", ["key_sha256"])
    op.execute(_QUEUE)
    op.execute(_TRIGGER)
    _forbid_updates()


def _forbid_updates() -> None:
    """Add triggers that reject updates of append-only tables."""
    op.execute(
        "CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'rows of % are added and never changed', TG_TABLE_NAME; END $$"
    )
    for table in _APPEND_ONLY:
        op.execute(
            f"CREATE TRIGGER {table}_never_change BEFORE UPDATE ON {table}"
            " FOR EACH ROW EXECUTE FUNCTION refuse_change()"
        )

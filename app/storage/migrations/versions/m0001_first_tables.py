"""Create the first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "submissions",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("model", sa.Text),
        sa.Column("run", sa.Text),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "answers",
        sa.Column("sha256", sa.Text, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("words", sa.Integer, nullable=False),
    )
    _create_jobs()
    _create_results()
    op.create_table(
        "captures",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("key_sha256", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("captured_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("captures_by_key", "captures", ["key_sha256", "captured_at"])
    op.create_table(
        "idempotency_keys",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("response", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table("queue_migrations", sa.Column("name", sa.Text, primary_key=True))


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("submission_id", sa.Text, sa.ForeignKey("submissions.id"), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("answer_name", sa.Text, nullable=False),
        sa.Column("answer_sha256", sa.Text, sa.ForeignKey("answers.sha256"), nullable=False),
        sa.Column("model", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("stage", sa.Text),
        sa.Column("pages_done", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("pages_total", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("leaves_done", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("leaves_total", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("queue_id", sa.BigInteger),
        sa.Column("attempts", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("attempts_allowed", sa.Integer, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("result_id", sa.Text),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True)),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("revision", sa.BigInteger, nullable=False, server_default=sa.text("1")),
    )
    op.create_index("jobs_by_submission", "jobs", ["submission_id"])
    op.create_index("jobs_by_status", "jobs", ["status", "id"])
    op.create_index("jobs_by_agent", "jobs", ["agent", "task_id", "id"])


def _create_results() -> None:
    op.create_table(
        "results",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.id"), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("answer_name", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("final_score", sa.Float, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint("job_id", "attempt", name="one_result_per_attempt"),
    )
    op.create_index("results_by_agent", "results", ["agent", "task_id", "id"])
    op.create_table(
        "result_pages",
        sa.Column("result_id", sa.Text, sa.ForeignKey("results.id"), primary_key=True),
        sa.Column("capture_id", sa.Text, primary_key=True),
    )
    op.create_index("result_pages_by_capture", "result_pages", ["capture_id"])

"""The tables, as SQLAlchemy sees them. The migrations make them; a test compares the two.

JSON that came from outside is kept as text: PostgreSQL's ``jsonb`` refuses NUL escapes and lone
surrogates, and what is shown must be byte for byte what was stored.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()

submissions = Table(
    "submissions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("model", Text),
    Column("run", Text),
    Column("metadata", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
)

answers = Table(
    "answers",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("text", Text, nullable=False),
    Column("words", Integer, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("submission_id", Text, ForeignKey("submissions.id"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("agent", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("answer_name", Text, nullable=False),
    Column("answer_sha256", Text, ForeignKey("answers.sha256"), nullable=False),
    Column("model", Text),
    Column("status", Text, nullable=False),
    Column("stage", Text),
    Column("pages_done", Integer, nullable=False, server_default=text("0")),
    Column("pages_total", Integer, nullable=False, server_default=text("0")),
    Column("leaves_done", Integer, nullable=False, server_default=text("0")),
    Column("leaves_total", Integer, nullable=False, server_default=text("0")),
    # The fence: whoever writes names the queue entry and the attempt it holds.
    Column("queue_id", BigInteger),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("attempts_allowed", Integer, nullable=False),
    Column("error", Text),
    Column("result_id", Text),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("started_at", DateTime(timezone=True)),
    Column("finished_at", DateTime(timezone=True)),
    # Counts every change, so that a reader of the events knows what it has seen.
    Column("revision", BigInteger, nullable=False, server_default=text("1")),
    Index("jobs_by_submission", "submission_id"),
    Index("jobs_by_status", "status", "id"),
    Index("jobs_by_agent", "agent", "task_id", "id"),
)

results = Table(
    "results",
    metadata,
    Column("id", Text, primary_key=True),
    Column("job_id", Text, ForeignKey("jobs.id"), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("agent", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("answer_name", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("final_score", Float, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    UniqueConstraint("job_id", "attempt", name="one_result_per_attempt"),
    Index("results_by_agent", "agent", "task_id", "id"),
)

captures = Table(
    "captures",
    metadata,
    Column("id", Text, primary_key=True),
    # A key can be longer than an index entry may be, hence the hash.
    Column("key_sha256", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("record", Text, nullable=False),
    Column("captured_at", DateTime(timezone=True), nullable=False),
    Index("captures_by_key", "key_sha256", "captured_at"),
)

result_pages = Table(
    "result_pages",
    metadata,
    Column("result_id", Text, ForeignKey("results.id"), primary_key=True),
    Column("capture_id", Text, primary_key=True),
    Index("result_pages_by_capture", "capture_id"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("response", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
)

queue_migrations = Table(
    "queue_migrations",
    metadata,
    Column("name", Text, primary_key=True),
)

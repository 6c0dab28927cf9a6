"""The tables, as SQLAlchemy sees them. The migrations make them; a test compares the two.

JSON that came from outside is kept as text: PostgreSQL's ``jsonb`` refuses NUL escapes and lone
surrogates, and what is shown must be byte for byte what was stored.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
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
    # Higher ones first; handed on to the jobs.
    Column("priority", Integer, nullable=False, server_default=text("0")),
    # What judging all its answers may cost; NULL: no limit of its own.
    Column("budget_usd", Float),
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
    # Repeated from the submission, so that every list can be narrowed to what is somebody's own.
    Column("owner", Text, nullable=False),
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
    Column("priority", Integer, nullable=False, server_default=text("0")),
    # Why a paused job waits for money: the purse that was empty, and its limit then.
    Column("paused_purse", Text),
    Column("paused_limit_usd", Float),
    # What is to be done: judge an answer, or run a suite.
    Column("kind", Text, nullable=False, server_default=text("'answer'")),
    Index("jobs_by_submission", "submission_id"),
    Index("jobs_by_status", "status", "id"),
    Index("jobs_by_agent", "agent", "task_id", "id"),
    Index("jobs_by_owner", "owner", "id"),
    Index("jobs_waiting", "id", postgresql_where=text("status = 'queued'")),
    Index("jobs_paused", "id", postgresql_where=text("status = 'queued' AND stage = 'paused'")),
)

results = Table(
    "results",
    metadata,
    Column("id", Text, primary_key=True),
    Column("job_id", Text, ForeignKey("jobs.id"), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("owner", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("answer_name", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("final_score", Float, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("kind", Text, nullable=False, server_default=text("'answer'")),
    UniqueConstraint("job_id", "attempt", name="one_result_per_attempt"),
    Index("results_by_agent", "agent", "task_id", "id"),
    Index("results_by_owner", "owner", "id"),
)

# What people say of single leaves. Rows are added and never changed (a trigger sees to it): taking one back is another.
overrides = Table(
    "overrides",
    metadata,
    Column("id", Text, primary_key=True),
    Column("result_id", Text, ForeignKey("results.id", ondelete="CASCADE"), nullable=False),
    Column("leaf", Text, nullable=False),
    # passed or failed; NULL where the row takes back the one that ``withdraws`` names.
    Column("outcome", Text),
    # The judge's own outcome, and the model that it is from (NULL: code decided).
    Column("verdict", Text, nullable=False),
    Column("model", Text),
    Column("reason", Text, nullable=False),
    Column("by", Text, nullable=False),
    # Whose key it came with; ``by`` is only what they call themselves.
    Column("key_owner", Text, nullable=False),
    Column("withdraws", Text),
    Column("created_at", DateTime(timezone=True), nullable=False),
    UniqueConstraint("withdraws", name="withdrawn_once"),
    Index("overrides_by_result", "result_id", "id"),
)

captures = Table(
    "captures",
    metadata,
    Column("id", Text, primary_key=True),
    # A key can be longer than an index entry may be, hence the hash.
    Column("key_sha256", Text, nullable=False),
    # Of the address where evidence was found, if that is another one: whoever cites that has this page, too.
    Column("final_key_sha256", Text),
    Column("url", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("record", Text, nullable=False),
    Column("captured_at", DateTime(timezone=True), nullable=False),
    Index("captures_by_key", "key_sha256", "captured_at"),
    Index("captures_by_final_key", "final_key_sha256", "captured_at"),
)

capture_turns = Table(
    "capture_turns",
    metadata,
    Column("key_sha256", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
)

host_visits = Table(
    "host_visits",
    metadata,
    Column("host", Text, primary_key=True),
    Column("next_at", DateTime(timezone=True), nullable=False),
)

result_pages = Table(
    "result_pages",
    metadata,
    Column("result_id", Text, ForeignKey("results.id"), primary_key=True),
    Column("capture_id", Text, primary_key=True),
    Index("result_pages_by_capture", "capture_id"),
)

# The pages that a result's answer and leaves cite: how many leaves, how many of them open, what they cost.
result_sources = Table(
    "result_sources",
    metadata,
    Column("result_id", Text, ForeignKey("results.id", ondelete="CASCADE"), primary_key=True),
    Column("key_sha256", Text, primary_key=True),
    Column("url", Text, nullable=False),
    Column("leaves", Integer, nullable=False),
    Column("open_leaves", Integer, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("usd", Float),
    Index("result_sources_by_key", "key_sha256"),
)

# What people did with cited URLs. Rows are added and never changed (a trigger sees to it): an undo is another one.
page_changes = Table(
    "page_changes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("action", Text, nullable=False),
    Column("key_sha256", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("to_url", Text),
    Column("task_id", Text),
    Column("page_id", Text),
    Column("why", Text, nullable=False),
    Column("by", Text, nullable=False),
    # Whose key it came with; ``by`` is only what they call themselves.
    Column("key_owner", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("undoes", Text, ForeignKey("page_changes.id")),
    UniqueConstraint("undoes", name="undone_once"),
    Index("page_changes_by_key", "key_sha256", "id"),
    Index("page_changes_by_task", "task_id", "id"),
)

# Captures that a change keeps from answering for a key (hides), or that answer because of it (shows).
page_change_captures = Table(
    "page_change_captures",
    metadata,
    Column("change_id", Text, ForeignKey("page_changes.id", ondelete="CASCADE"), primary_key=True),
    Column("capture_id", Text, primary_key=True),
    Column("key_sha256", Text, nullable=False),
    Column("effect", Text, nullable=False),
    Index("page_change_captures_by_key", "key_sha256"),
)

# People's browsers that may hand pages in. Of code and token only the hash is here.
pairings = Table(
    "pairings",
    metadata,
    Column("id", Text, primary_key=True),
    Column("code_sha256", Text, nullable=False, unique=True),
    Column("owner", Text, nullable=False),
    # Whether whose code it was sees what others handed in.
    Column("everybody", Boolean, nullable=False),
    Column("made_at", DateTime(timezone=True), nullable=False),
    Column("code_expires_at", DateTime(timezone=True), nullable=False),
    Column("token_sha256", Text),
    Column("name", Text),
    Column("paired_at", DateTime(timezone=True)),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
)

bundle_roots = Table(
    "bundle_roots",
    metadata,
    Column("result_id", Text, ForeignKey("results.id", ondelete="CASCADE"), primary_key=True),
    Column("root_sha256", Text, primary_key=True),
    # Whether what pages say is in the bundle.
    Column("content", Boolean, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
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

api_keys = Table(
    "api_keys",
    metadata,
    # Also the part of the key that may be shown.
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
)

installation = Table(
    "installation",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text),
)

# Replies of models to a job that has not ended well yet. ``counted``: their cost stands in a stored result.
checkpoints = Table(
    "checkpoints",
    metadata,
    Column("job_id", Text, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("reply", Text, nullable=False),
    Column("counted", Boolean, nullable=False, server_default=text("false")),
)

# Replies of models by the hash of their request, for all workers. ``entry`` is JSON that says its own digest.
kept_replies = Table(
    "kept_replies",
    metadata,
    Column("key", Text, primary_key=True),
    Column("model", Text, nullable=False),
    Column("entry", Text, nullable=False),
    Column("bytes", Integer, nullable=False),
    Column("used_at", DateTime(timezone=True), nullable=False),
)

# What was spent, by submission id and for the whole installation.
purses = Table(
    "purses",
    metadata,
    Column("id", Text, primary_key=True),
    Column("spent_usd", Float, nullable=False, server_default=text("0")),
)

# What processes have set aside for requests under way.
purse_holds = Table(
    "purse_holds",
    metadata,
    Column("purse", Text, primary_key=True),
    Column("holder", Text, primary_key=True),
    Column("usd", Float, nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
)

# How many of a scarce thing's places each process holds.
shared_slots = Table(
    "shared_slots",
    metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, primary_key=True),
    Column("held", Integer, nullable=False),
    Column("wanted", Integer, nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
)

# Whether a provider answers a key (``model`` is empty) and one of its models.
model_lines = Table(
    "model_lines",
    metadata,
    Column("circuit", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("refusal", Text),
    Column("changed_at", DateTime(timezone=True), nullable=False),
    Column("probed_at", DateTime(timezone=True), nullable=False),
)

# What models were asked and cost, by day, for whom and what for; kept when jobs and results are removed.
model_usage = Table(
    "model_usage",
    metadata,
    Column("day", Date, primary_key=True),
    Column("owner", Text, primary_key=True),
    Column("agent", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("role", Text, primary_key=True),
    Column("calls", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("usd", Float, nullable=False),
    # Calls of which the price is not known: what they cost is not in ``usd``.
    Column("unpriced_calls", BigInteger, nullable=False),
)

# Providers that an operator wants nobody to ask for a while.
provider_pauses = Table(
    "provider_pauses",
    metadata,
    Column("provider", Text, primary_key=True),
    Column("reason", Text, nullable=False),
    Column("paused_by", Text, nullable=False),
    Column("paused_at", DateTime(timezone=True), nullable=False),
)

# What a run of a suite is about, and each of its steps as it ends.
suite_runs = Table(
    "suite_runs",
    metadata,
    Column("job_id", Text, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    # What must be equal for the steps of an earlier attempt to count.
    Column("identity", Text, nullable=False),
    Column("total", Integer, nullable=False),
)

suite_steps = Table(
    "suite_steps",
    metadata,
    Column("job_id", Text, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("task_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("element_acc", Float),
    Column("action_f1", Float),
    Column("step_acc", Float),
    # The record without what is long, and what is long.
    Column("record", Text, nullable=False),
    Column("trace", Text, nullable=False),
)

queue_migrations = Table("queue_migrations", metadata, Column("name", Text, primary_key=True))

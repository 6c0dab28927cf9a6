"""SQLAlchemy table definitions, from which the initial migration creates the tables.

External JSON is stored as text, because ``jsonb`` rejects NUL escapes and lone surrogates, and because the API must
return exactly the stored bytes.
"""

from __future__ import annotations

import hashlib
from functools import cache, partial
from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

metadata = MetaData()
_TIMESTAMP = DateTime(timezone=True)
_ZERO = text("0")
_Required = partial(Column, nullable=False)

submissions = Table(
    "submissions",
    metadata,
    Column("id", Text, primary_key=True),
    _Required("owner", Text),
    _Required("agent", Text),
    _Required("task_id", Text),
    Column("model", Text),
    Column("run", Text),
    _Required("metadata", Text),
    _Required("created_at", _TIMESTAMP),
    # Jobs with a higher priority run first. Copied to the jobs.
    _Required("priority", Integer, server_default=_ZERO),
    # Maximum cost of judging all answers of the submission; NULL: no limit.
    Column("budget_usd", Float),
)

answers = Table(
    "answers",
    metadata,
    Column("sha256", Text, primary_key=True),
    _Required("text", Text),
    _Required("words", Integer),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", Text, primary_key=True),
    _Required("submission_id", Text, ForeignKey("submissions.id")),
    # Copied from the submission, for filtering.
    _Required("owner", Text),
    _Required("position", Integer),
    _Required("agent", Text),
    _Required("task_id", Text),
    _Required("answer_name", Text),
    _Required("answer_sha256", Text, ForeignKey("answers.sha256")),
    Column("model", Text),
    _Required("status", Text),
    Column("stage", Text),
    _Required("pages_done", Integer, server_default=_ZERO),
    _Required("pages_total", Integer, server_default=_ZERO),
    _Required("leaves_done", Integer, server_default=_ZERO),
    _Required("leaves_total", Integer, server_default=_ZERO),
    # ``queue_id`` and ``attempts`` form the fencing token: a worker's writes must match both.
    Column("queue_id", BigInteger),
    _Required("attempts", Integer, server_default=_ZERO),
    _Required("attempts_allowed", Integer),
    Column("error", Text),
    Column("result_id", Text),
    _Required("created_at", _TIMESTAMP),
    Column("started_at", _TIMESTAMP),
    Column("finished_at", _TIMESTAMP),
    # Number of changes. Event IDs are based on it.
    _Required("revision", BigInteger, server_default=text("1")),
    _Required("priority", Integer, server_default=_ZERO),
    # For a job that is paused because of a budget: the budget, and its limit at that time.
    Column("paused_budget_id", Text),
    Column("paused_limit", Float),
    # A ``JobKind``.
    _Required("kind", Text, server_default=text("'answer'")),
    # Judge with stored pages only.
    _Required("stored_pages", Boolean, server_default=text("false")),
    # Copied from the submission; for a job that judges an answer again, from the earlier job.
    Column("run", Text),
    # JSON of a ``SuppliedEvidence``.
    Column("supplied", Text),
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
    _Required("job_id", Text, ForeignKey("jobs.id")),
    _Required("attempt", Integer),
    _Required("owner", Text),
    _Required("agent", Text),
    _Required("task_id", Text),
    _Required("answer_name", Text),
    _Required("status", Text),
    _Required("final_score", Float),
    _Required("body", Text),
    _Required("created_at", _TIMESTAMP),
    _Required("kind", Text, server_default=text("'answer'")),
    # Bounds of the score; equal unless leaves were not judged.
    Column("score_low", Float),
    Column("score_high", Float),
    # Model of the judge.
    _Required("model", Text),
    UniqueConstraint("job_id", "attempt", name="one_result_per_attempt"),
    Index("results_by_agent", "agent", "task_id", "id"),
    Index("results_by_owner", "owner", "id"),
)

# Human verdicts on single leaves. Append-only, enforced by a trigger. A withdrawal is another row.
overrides = Table(
    "overrides",
    metadata,
    Column("id", Text, primary_key=True),
    _Required("result_id", Text, ForeignKey("results.id", ondelete="CASCADE")),
    _Required("leaf", Text),
    # passed or failed; NULL if this row withdraws the override ``withdraws``.
    Column("outcome", Text),
    # The judge's outcome, and the model that gave it (NULL: code decided).
    _Required("verdict", Text),
    Column("model", Text),
    _Required("reason", Text),
    _Required("by", Text),
    # Owner of the API key; ``by`` is a name that the user entered.
    _Required("key_owner", Text),
    Column("withdraws", Text),
    _Required("created_at", _TIMESTAMP),
    UniqueConstraint("withdraws", name="withdrawn_once"),
    Index("overrides_by_result", "result_id", "id"),
)

captures = Table(
    "captures",
    metadata,
    Column("id", Text, primary_key=True),
    # Keys are hashed because they can exceed the size of an index entry.
    _Required("key_sha256", Text),
    # Key of the final address after redirects, if it differs. Citations of that address use this capture, too.
    Column("final_key_sha256", Text),
    _Required("url", Text),
    _Required("outcome", Text),
    _Required("record", Text),
    _Required("captured_at", _TIMESTAMP),
    # Owner for whose answers the capture is used; NULL: for all answers.
    Column("owner", Text),
    Index("captures_by_key", "key_sha256", "captured_at"),
    Index("captures_by_final_key", "final_key_sha256", "captured_at"),
)

capture_locks = Table(
    "capture_locks",
    metadata,
    Column("key_sha256", Text, primary_key=True),
    _Required("holder", Text),
    _Required("expires_at", _TIMESTAMP),
)

host_visits = Table(
    "host_visits",
    metadata,
    Column("host", Text, primary_key=True),
    _Required("next_at", _TIMESTAMP),
)

result_pages = Table(
    "result_pages",
    metadata,
    Column("result_id", Text, ForeignKey("results.id"), primary_key=True),
    Column("capture_id", Text, primary_key=True),
    Index("result_pages_by_capture", "capture_id"),
)

# Pages that a result's answer and leaves cite, with the number of leaves and the cost of judging them.
result_sources = Table(
    "result_sources",
    metadata,
    Column("result_id", Text, ForeignKey("results.id", ondelete="CASCADE"), primary_key=True),
    Column("key_sha256", Text, primary_key=True),
    _Required("url", Text),
    _Required("leaves", Integer),
    _Required("open_leaves", Integer),
    _Required("calls", Integer),
    Column("usd", Float),
    Index("result_sources_by_key", "key_sha256"),
)

# Changes of cited URLs by users. Append-only, enforced by a trigger. An undo is another row.
page_changes = Table(
    "page_changes",
    metadata,
    Column("id", Text, primary_key=True),
    _Required("action", Text),
    _Required("key_sha256", Text),
    _Required("url", Text),
    Column("to_url", Text),
    Column("task_id", Text),
    Column("page_id", Text),
    _Required("reason", Text),
    _Required("by", Text),
    # Owner of the API key; ``by`` is a name that the user entered.
    _Required("key_owner", Text),
    # Owner whose answers the change affects; NULL: the answers of all owners.
    Column("for_owner", Text),
    _Required("created_at", _TIMESTAMP),
    Column("undoes", Text, ForeignKey("page_changes.id")),
    UniqueConstraint("undoes", name="undone_once"),
    Index("page_changes_by_key", "key_sha256", "id"),
    Index("page_changes_by_task", "task_id", "id"),
)

# Captures that a change excludes from being used for a key (hides), or that are used because of it (shows).
page_change_captures = Table(
    "page_change_captures",
    metadata,
    Column("change_id", Text, ForeignKey("page_changes.id", ondelete="CASCADE"), primary_key=True),
    Column("capture_id", Text, primary_key=True),
    _Required("key_sha256", Text),
    _Required("effect", Text),
    Index("page_change_captures_by_key", "key_sha256"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    _Required("fingerprint", Text),
    _Required("response", Text),
    _Required("created_at", _TIMESTAMP),
)

api_keys = Table(
    "api_keys",
    metadata,
    # Part of the key, not secret.
    Column("id", Text, primary_key=True),
    _Required("owner", Text),
    _Required("scope", Text),
    _Required("sha256", Text),
    _Required("created_at", _TIMESTAMP),
    Column("expires_at", _TIMESTAMP),
    Column("revoked_at", _TIMESTAMP),
)

installation = Table(
    "installation",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text),
)

# Model replies of a job, until it has a complete result. ``counted``: a stored result includes the cost.
checkpoints = Table(
    "checkpoints",
    metadata,
    Column("job_id", Text, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("key", Text, primary_key=True),
    _Required("reply", Text),
    _Required("counted", Boolean, server_default=text("false")),
)

# Reply cache of all workers, by request hash. ``entry`` is JSON that includes its own digest.
llm_cache = Table(
    "llm_cache",
    metadata,
    Column("key", Text, primary_key=True),
    _Required("model", Text),
    _Required("entry", Text),
    _Required("bytes", Integer),
    _Required("used_at", _TIMESTAMP),
)

# Spent amounts, by submission ID and for the whole installation (see ``budgets.INSTALLATION_BUDGET``).
budgets = Table(
    "budgets",
    metadata,
    Column("id", Text, primary_key=True),
    _Required("spent", Float, server_default=_ZERO),
)

# Budget reservations of processes for running requests.
budget_reservations = Table(
    "budget_reservations",
    metadata,
    Column("budget_id", Text, primary_key=True),
    Column("holder", Text, primary_key=True),
    _Required("amount", Float),
    _Required("expires_at", _TIMESTAMP),
)

# Leases of shared slots, per process.
shared_slots = Table(
    "shared_slots",
    metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, primary_key=True),
    _Required("held", Integer),
    _Required("wanted", Integer),
    _Required("expires_at", _TIMESTAMP),
)

# Provider status, per API key (``model`` is empty) and per model of a key.
provider_status = Table(
    "provider_status",
    metadata,
    Column("credential_id", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    _Required("state", Text),
    Column("rejection", Text),
    _Required("changed_at", _TIMESTAMP),
    _Required("probed_at", _TIMESTAMP),
)

# Model usage per day. Kept when jobs and results are removed.
model_usage = Table(
    "model_usage",
    metadata,
    Column("day", Date, primary_key=True),
    Column("owner", Text, primary_key=True),
    Column("agent", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("role", Text, primary_key=True),
    _Required("calls", BigInteger),
    _Required("input_tokens", BigInteger),
    _Required("output_tokens", BigInteger),
    _Required("usd", Float),
    # Calls with an unknown price. ``usd`` does not include their cost.
    _Required("unpriced_calls", BigInteger),
)

# Model providers that an operator has paused.
provider_pauses = Table(
    "provider_pauses",
    metadata,
    Column("provider", Text, primary_key=True),
    _Required("reason", Text),
    _Required("paused_by", Text),
    _Required("paused_at", _TIMESTAMP),
)

queue_migrations = Table("queue_migrations", metadata, Column("name", Text, primary_key=True))

# Addresses that are called when jobs end. ``submission_id``: only for jobs of this submission.
webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Text, primary_key=True),
    _Required("owner", Text),
    _Required("url", Text),
    # Key of the signatures. Stored, because a hash cannot sign.
    _Required("secret", Text),
    _Required("description", Text),
    Column("submission_id", Text, ForeignKey("submissions.id", ondelete="CASCADE")),
    _Required("created_at", _TIMESTAMP),
    Column("disabled_at", _TIMESTAMP),
    Column("disabled_reason", Text),
    Index("webhooks_by_owner", "owner", "id"),
    Index("webhooks_by_submission", "submission_id"),
)

# Queue and log of webhook deliveries. A trigger of ``jobs`` inserts a row for each webhook when a job ends.
webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("position", BigInteger, Identity(), primary_key=True),
    _Required(
        "id",
        Text,
        server_default=text("('msg_'::text || replace((gen_random_uuid())::text, '-'::text, ''::text))"),
    ),
    _Required("webhook_id", Text, ForeignKey("webhooks.id", ondelete="CASCADE")),
    # Owner of the webhook.
    _Required("owner", Text),
    Column("job_id", Text, ForeignKey("jobs.id", ondelete="CASCADE")),
    _Required("event", Text),
    # Row of the job at its end, as JSON; NULL for a test.
    Column("snapshot", Text),
    _Required("state", Text, server_default=text("'pending'")),
    _Required("attempts", Integer, server_default=_ZERO),
    Column("status_code", Integer),
    Column("error", Text),
    _Required("created_at", _TIMESTAMP),
    Column("next_at", _TIMESTAMP),
    Column("delivered_at", _TIMESTAMP),
    Index("webhook_deliveries_by_webhook", "webhook_id", "position"),
    Index("webhook_deliveries_by_job", "job_id"),
    Index("webhook_deliveries_due", "owner", "next_at", postgresql_where=text("state = 'pending'")),
)

# Suite runs, and their steps in ``suite_steps``.
suite_runs = Table(
    "suite_runs",
    metadata,
    Column("job_id", Text, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    # Steps of an earlier attempt are reused only if the identity is equal.
    _Required("identity", Text),
    _Required("total", Integer),
)

suite_steps = Table(
    "suite_steps",
    metadata,
    Column("job_id", Text, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    _Required("task_id", Text),
    _Required("status", Text),
    Column("element_acc", Float),
    Column("action_f1", Float),
    Column("step_acc", Float),
    # The trace is stored apart from the record because it is long.
    _Required("record", Text),
    _Required("trace", Text),
)

TRIGGERS: Final = (
    # A webhook of the owner gets an event when a job ends.
    """
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
""",
    """
CREATE TRIGGER jobs_queue_webhook_deliveries AFTER UPDATE OF status ON jobs FOR EACH ROW
WHEN (OLD.status IS DISTINCT FROM NEW.status AND NEW.status IN ('succeeded', 'failed', 'cancelled'))
EXECUTE FUNCTION queue_webhook_deliveries()
""",
    """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'rows of % are added and never changed', TG_TABLE_NAME; END $$
""",
    *(
        f"CREATE TRIGGER {table}_never_change BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION refuse_change()"
        for table in (overrides.name, page_changes.name)
    ),
)
"""Statements that create functions and triggers, after the tables."""


@cache
def schema_revision() -> str:
    """Return a short hash of all tables, indexes and triggers."""
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    statements = [str(CreateTable(table).compile(dialect=dialect)) for table in metadata.sorted_tables]
    indexes = [index for table in metadata.sorted_tables for index in table.indexes]
    statements += sorted(str(CreateIndex(index).compile(dialect=dialect)) for index in indexes)
    return hashlib.sha256("".join([*statements, *TRIGGERS]).encode()).hexdigest()[:12]

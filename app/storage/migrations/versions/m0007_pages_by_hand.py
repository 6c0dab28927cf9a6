"""Add cited URLs of results, page changes by users, and browser pairings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "result_sources",
        sa.Column("result_id", sa.Text, sa.ForeignKey("results.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("key_sha256", sa.Text, primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("leaves", sa.Integer, nullable=False),
        sa.Column("open_leaves", sa.Integer, nullable=False),
        sa.Column("calls", sa.Integer, nullable=False),
        sa.Column("usd", sa.Float),
    )
    op.create_index("result_sources_by_key", "result_sources", ["key_sha256"])
    op.create_table(
        "page_changes",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("key_sha256", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("to_url", sa.Text),
        sa.Column("task_id", sa.Text),
        sa.Column("page_id", sa.Text),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("key_owner", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("undoes", sa.Text, sa.ForeignKey("page_changes.id")),
        sa.UniqueConstraint("undoes", name="undone_once"),
    )
    op.create_index("page_changes_by_key", "page_changes", ["key_sha256", "id"])
    op.create_index("page_changes_by_task", "page_changes", ["task_id", "id"])
    op.execute(
        "CREATE TRIGGER page_changes_never_change BEFORE UPDATE ON page_changes"
        " FOR EACH ROW EXECUTE FUNCTION refuse_change()"
    )
    op.create_table(
        "page_change_captures",
        sa.Column("change_id", sa.Text, sa.ForeignKey("page_changes.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("capture_id", sa.Text, primary_key=True),
        sa.Column("key_sha256", sa.Text, nullable=False),
        sa.Column("effect", sa.Text, nullable=False),
    )
    op.create_index("page_change_captures_by_key", "page_change_captures", ["key_sha256"])
    op.create_table(
        "pairings",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("code_sha256", sa.Text, nullable=False, unique=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("everybody", sa.Boolean, nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("code_expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("token_sha256", sa.Text),
        sa.Column("name", sa.Text),
        sa.Column("paired_at", sa.DateTime(timezone=True)),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
    )
    _read_what_is_there(op.get_bind())


def _read_what_is_there(connection: sa.Connection) -> None:
    """Fill ``result_sources`` for existing results, in small batches because bodies are large."""
    from app.storage.cited_sources import rows_of

    sources = sa.table(
        "result_sources",
        *(sa.column(name) for name in ("result_id", "key_sha256", "url", "leaves", "open_leaves", "calls", "usd")),
    )
    after = ""
    while True:
        query = sa.text("SELECT id, body FROM results WHERE kind = 'answer' AND id > :after ORDER BY id LIMIT 20")
        found = connection.execute(query, {"after": after}).all()
        if not found:
            return
        rows = [row for result_id, body in found for row in rows_of(result_id, body)]
        if rows:
            connection.execute(sa.insert(sources), rows)
        after = found[-1].id

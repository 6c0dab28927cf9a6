"""Add API keys, and the owner of each job and result."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
    )
    op.add_column("jobs", sa.Column("owner", sa.Text))
    op.execute("UPDATE jobs SET owner = submissions.owner FROM submissions WHERE submissions.id = jobs.submission_id")
    op.alter_column("jobs", "owner", nullable=False)
    op.create_index("jobs_by_owner", "jobs", ["owner", "id"])
    op.add_column("results", sa.Column("owner", sa.Text))
    op.execute("UPDATE results SET owner = jobs.owner FROM jobs WHERE jobs.id = results.job_id")
    op.alter_column("results", "owner", nullable=False)
    op.create_index("results_by_owner", "results", ["owner", "id"])
    # For counting queued jobs without reading finished ones.
    op.create_index("jobs_waiting", "jobs", ["id"], postgresql_where=sa.text("status = 'queued'"))

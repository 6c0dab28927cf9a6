"""Create all tables of the first release."""

from __future__ import annotations

from alembic import op

from app.storage.tables import TRIGGERS, metadata, schema_revision

# Until the first release, ``app.storage.tables`` may change. A database with other tables is refused by its revision.
revision = schema_revision()
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    metadata.create_all(op.get_bind(), checkfirst=False)
    for statement in TRIGGERS:
        op.execute(statement)

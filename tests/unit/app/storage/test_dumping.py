from __future__ import annotations

from app.storage.dumping import connection_variables


def test_client_programs_get_the_whole_connection_url() -> None:
    url = "postgresql://me:a%20word@db.example:5433/assay?sslmode=verify-full&sslrootcert=/etc/ca.pem&keepalives=1"
    assert connection_variables(url) == {
        "PGUSER": "me",
        "PGPASSWORD": "a word",
        "PGHOST": "db.example",
        "PGPORT": "5433",
        "PGDATABASE": "assay",
        "PGSSLMODE": "verify-full",
        "PGSSLROOTCERT": "/etc/ca.pem",
    }

"""PostgreSQL storage: connections, migrations, tables and queries. SQL appears only here and in ``app/jobs``."""

"""PostgreSQL: what is kept, and the only place besides app/jobs that speaks SQL."""

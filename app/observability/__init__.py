"""Metrics, structured logs, and the redaction of secrets."""

"""API keys and rate limits: who may use the service, and how much."""

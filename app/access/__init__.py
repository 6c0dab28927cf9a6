"""API keys and rate limits."""

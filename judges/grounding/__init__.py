"""Grounding checks: code verifies that the quotes and terms of a verdict occur in the page."""

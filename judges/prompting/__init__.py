"""Prompts: page views, message rendering, and the reply format of verdicts."""

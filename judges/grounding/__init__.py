"""Grounding: checks, by code alone, that a verdict's quotes and terms really occur in the page."""

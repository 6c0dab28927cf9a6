"""Prompts under the names that public task scripts import."""

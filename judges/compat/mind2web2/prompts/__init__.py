"""Prompts under the names that public judge scripts import."""

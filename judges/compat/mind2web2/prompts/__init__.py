"""Prompts under the names public judge scripts import."""

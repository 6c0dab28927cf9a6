"""Answers of agents: validation, import formats and citations. Independent of pages and judges."""

"""Tests of tasks: known edits of extracted values and citations, and the leaves that must change."""

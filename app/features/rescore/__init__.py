"""Rescoring: judge stored answers again after a change of the rubric, and compare the scores."""

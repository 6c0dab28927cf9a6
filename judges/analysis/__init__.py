"""Analyses of results and judges: statistics, mutation testing, meta-evaluation, replay."""

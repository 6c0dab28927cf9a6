"""Analyses of results and judges: statistics, sensitivity, mutation testing, meta-evaluation, replay."""

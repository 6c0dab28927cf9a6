"""Analyses of results and judges: statistics, tests of tasks, meta-evaluation, replay."""

"""Comparison of agents and runs, and the regression gate."""

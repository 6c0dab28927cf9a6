"""Sensitivity analysis: effect of single verdicts, votes and weights; consistency of judges."""

"""Sensitivity analysis: effect of single verdicts, votes and weights on results and comparisons; consistency of judges."""

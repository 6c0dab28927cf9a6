"""Sensitivity analysis: effect of single verdicts, votes and weights on a result, on a comparison and on a judge's
consistency.
"""

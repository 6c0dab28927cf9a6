"""Statistics over results and labels: pure functions, the one home of their formulas."""

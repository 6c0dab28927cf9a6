"""Public step benchmarks: what was asked, what was right, and how answers are scored."""

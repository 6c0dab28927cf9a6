"""Ten task scripts for the benchmarks, in the public API and in the style of public scripts."""

"""Ten judge scripts for the benchmarks, in the public API and in the style of public scripts."""

"""Step suites: readers, prompts and scores of public web-agent benchmarks."""

"""The HTTP interface: thin translations between requests and the packages below, and nothing else."""

"""What turns a bare checkout into one that runs: standard library only, since nothing is installed yet."""

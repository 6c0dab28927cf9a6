"""The filtering proxy through which every capture reaches the network, and its rules."""

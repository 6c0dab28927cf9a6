"""Loading of the demo into a running service, for its first-run page."""

"""Judging of one answer, for the service and the command line."""

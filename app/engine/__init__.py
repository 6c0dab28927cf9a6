"""Judging one answer, in the service and on the command line alike."""

"""Egress proxy: the filtering proxy that all captures go through, and its rules."""

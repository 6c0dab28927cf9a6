"""Recomputation of results from their stored parts. Pure: no model and no page is requested."""

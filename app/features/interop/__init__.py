"""Interchange formats: import of answers and page caches, export of results and page caches."""

"""Benchmarks of the speed and memory figures that the project states, next to those of the public toolkit.

``python -m tests.bench`` (``make bench``) prints them as a table. They are not tests: a figure depends on the machine
and its load, so it never fails a build.
"""

"""Measures the figures of speed and memory that the project promises, side by side with those of the public toolkit.

``python -m tests.bench`` (``make bench``) prints them as a table. Nothing here is a test: a figure depends on the
machine and its load, so it is looked at, and never fails a build.
"""

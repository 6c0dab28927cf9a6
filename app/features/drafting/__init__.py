"""Drafting of tasks with a model: ``assay tasks draft``."""

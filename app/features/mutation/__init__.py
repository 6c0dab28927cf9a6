"""Mutation testing of judges: ``assay tasks test``."""

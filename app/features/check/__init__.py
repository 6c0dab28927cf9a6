"""Audit of the citations of a report: ``assay check``."""

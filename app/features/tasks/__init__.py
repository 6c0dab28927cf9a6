"""Tasks: their rubrics, scores and files in the dashboard, and ``assay tasks test``."""

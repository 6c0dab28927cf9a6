"""Tasks in the dashboard: rubrics, scores and the text of task files."""

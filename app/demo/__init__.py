"""Demo: a small fictional website, answers of three agents about it, and their expected scores."""

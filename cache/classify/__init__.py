"""Page classification: walls, challenge pages, soft 404s, placeholders and empty pages."""

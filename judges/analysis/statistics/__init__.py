"""Statistics over results and labels. Pure functions; each formula is in one place, with its source."""

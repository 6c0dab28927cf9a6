"""Pages in awkward forms, each with words that a person would find on it."""

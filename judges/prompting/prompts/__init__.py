"""The prompts, one versioned file each, and their loader."""

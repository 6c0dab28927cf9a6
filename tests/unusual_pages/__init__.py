"""Pages with unusual content types, encodings and scripts, each with text that a capture must contain."""

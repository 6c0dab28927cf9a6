"""Capture of cited URLs, and storage of the evidence that judges see."""

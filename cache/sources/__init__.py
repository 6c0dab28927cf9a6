"""Other sources of evidence: the web archive, saved pages and uploads."""

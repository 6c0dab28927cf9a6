"""Realistic pages: articles with missing style sheets or scripts, overlays, and pages with little text."""

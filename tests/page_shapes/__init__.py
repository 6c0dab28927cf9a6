"""Pages shaped like real ones: articles with missing style sheets or scripts, overlays, and pages with little text."""

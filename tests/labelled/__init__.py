"""Pages with labels: what the detector of block pages, walls and missing pages is measured by."""

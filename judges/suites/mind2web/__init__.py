"""Mind2Web: multiple-choice rounds over the elements of a page, scored as the published evaluation does."""

"""The visible text of a page and where it appears in the screenshots."""

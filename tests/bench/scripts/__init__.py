"""Ten judge scripts in the public API, of the shapes that public scripts have: what the bench judges by."""

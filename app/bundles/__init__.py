"""Evidence bundles: everything that results rest on in one file, which anybody can check and play back."""

"""The public Mind2Web 2 module paths, kept for judge scripts written for them."""

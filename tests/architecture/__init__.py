"""Rules about the project itself: layers, documents, files. A rule that is not tested is a wish."""

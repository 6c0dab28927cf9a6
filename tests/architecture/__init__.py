"""Rules about the project itself: layers, documents, files."""

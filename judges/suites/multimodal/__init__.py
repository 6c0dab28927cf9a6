"""Multimodal-Mind2Web and its ~ snapshot: rows, protocol and scores of single web steps with screenshots."""

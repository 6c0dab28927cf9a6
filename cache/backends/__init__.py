"""Capture backends: browser, plain HTTP and documents. ``app/engine/runtime.py`` selects among them."""

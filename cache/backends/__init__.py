"""The ways to observe a URL. Each file is one; ``app/runtime.py`` chooses."""

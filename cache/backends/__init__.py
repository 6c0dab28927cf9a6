"""The ways to observe a URL. Each file is one; ``app/engine/runtime.py`` chooses."""

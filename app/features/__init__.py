"""Features: packages that use the core and not each other. ``app.cli`` and ``app.server`` compose them."""

"""What can be wrong with a bundle, or with making one."""

from __future__ import annotations

from app.errors import AppError


class BundleError(AppError):
    """A bundle cannot be made or read."""


class NothingToBundle(BundleError):
    """The agent has no such results."""


class BundleRefused(BundleError):
    """The file is no bundle, or is made to do harm: nothing of it was used."""

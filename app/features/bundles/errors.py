"""Errors raised when a bundle is created or read."""

from __future__ import annotations

from app.errors import AppError


class BundleError(AppError):
    """Base class: a bundle cannot be created or read."""


class NothingToBundle(BundleError):
    """The agent has no matching results."""


class BundleRefused(BundleError):
    """The file is not a valid bundle, or is unsafe. No content was used."""

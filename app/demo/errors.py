"""Errors of the demo website."""

from __future__ import annotations

from app.errors import AppError


class DemoPortTaken(AppError):
    """The port in the URLs of the shipped answers cannot be opened. The message contains the remedy."""

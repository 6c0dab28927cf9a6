"""What can go wrong with the demo's web site.

AppError
└── DemoPortTaken            another program listens where the shipped answers say the site is
"""

from __future__ import annotations

from app.errors import AppError


class DemoPortTaken(AppError):
    """The port that the shipped answers cite cannot be bound. The message names the remedy."""

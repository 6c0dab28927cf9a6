"""Errors of the dashboard.

DashboardError
├── InvalidFormToken    form without a valid form token (CSRF protection)
├── EmptyForm   empty form
└── NotFound   object not found
"""

from __future__ import annotations


class DashboardError(Exception):
    """Base class. The message is shown to the viewer."""

    status = 400


class InvalidFormToken(DashboardError):
    """The form has no valid form token."""

    status = 403


class EmptyForm(DashboardError):
    """The form is empty."""

    status = 422


class NotFound(DashboardError):
    """The requested object does not exist."""

    status = 404

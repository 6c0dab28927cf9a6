"""What goes wrong between a viewer and a page.

DashboardError
├── FormRefused    a form without the token of a page of ours
├── NothingGiven   a form with nothing in it
└── NothingThere   a page about something that there is not
"""

from __future__ import annotations


class DashboardError(Exception):
    """Base of this package's errors; the message is for the viewer."""

    status = 400


class FormRefused(DashboardError):
    """A form came in that no page of ours wrote."""

    status = 403


class NothingGiven(DashboardError):
    """A form was sent empty."""

    status = 422


class NothingThere(DashboardError):
    """What the page is about does not exist."""

    status = 404

"""Errors of citation checks.

InputRejected
└── ReportRejected   the report cannot be checked
"""

from __future__ import annotations

from app.errors import InputRejected


class ReportRejected(InputRejected):
    """The report cannot be checked: too long, too many citations, or its page cannot be read. The message says why."""

    code = "REPORT_REJECTED"

"""Errors of rubrics.

RubricError
|- InvalidNode      a node that breaks a rule of the tree, or a value that cannot be scored
`- UnknownNode      an id that is not in the rubric
"""

from __future__ import annotations


class RubricError(ValueError):
    """Base of all rubric errors. The message names the problem and the node."""


class InvalidNode(RubricError):
    """A node that breaks a rule of the tree, or has a value that cannot be scored."""


class UnknownNode(RubricError):
    """An id that is not in the rubric."""

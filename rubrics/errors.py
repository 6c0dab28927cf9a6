"""Errors of rubrics.

RubricError
|- InvalidNode      a node that breaks a rule of the tree, or a value that cannot be scored
|- UnknownNode      an id that is not in the rubric
`- SchemaError      a JSON document that is not a rubric of a supported version
"""

from __future__ import annotations


class RubricError(ValueError):
    """Base of all rubric errors. The message names the problem and the node."""


class InvalidNode(RubricError):
    """A node that breaks a rule of the tree, or has a value that cannot be scored."""


class UnknownNode(RubricError):
    """An id that is not in the rubric."""


class SchemaError(RubricError):
    """JSON document that is not a rubric of a supported version. ``path`` locates the problem (``tree.children.0``)."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message

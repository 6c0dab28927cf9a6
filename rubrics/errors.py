"""What can be wrong with a rubric. The hierarchy:

RubricError
|- InvalidNode      a node that may not be added, or a value on it that cannot be scored
|- UnknownNode      an id that the rubric does not hold
`- SchemaError      a JSON document that is not a rubric of a version we read
"""

from __future__ import annotations


class RubricError(ValueError):
    """Something is wrong with a rubric; the message says what and at which node."""


class InvalidNode(RubricError):
    """A node that may not be added, or a value on it that cannot be scored."""


class UnknownNode(RubricError):
    """An id that the rubric does not hold."""


class SchemaError(RubricError):
    """A JSON document that is not a rubric of a version we read; ``path`` is where, as ``tree.children.0``."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message

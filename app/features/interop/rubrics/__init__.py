"""Conversion of rubrics of other tools to task files. Pure: nothing of a source is executed or fetched."""

from enum import StrEnum


class RubricFormat(StrEnum):
    """Formats that can be imported."""

    HEALTHBENCH = "healthbench"
    PAPERBENCH = "paperbench"
    HARBOR = "harbor"
    PROMPTFOO = "promptfoo"
    OPENAI = "openai"

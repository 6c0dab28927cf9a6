"""Signs of prompt injection in a sentence, and the combinations of signs that form an injected instruction.

A single sign proves little. For the patterns of each sign, see ``injection_patterns``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class InjectionSign(StrEnum):
    """Sign that a sentence addresses the judge."""

    OVERRIDE = "override"
    """Asks to ignore earlier rules."""
    IMITATION = "imitation"
    """Imitates output of this program or of a model: chat tokens, block tags, a verdict as data."""
    ORDER = "order"
    """Demands a certain verdict on a claim or an answer."""
    ADDRESS = "address"
    """Addresses a model or a judge."""
    VERDICT = "verdict"
    """States or demands that a claim, statement or answer is right, or asks for leniency."""
    PRAISE = "praise"
    """Like ``VERDICT``, but without an object: "everything", "it", "this"."""
    AUTHORITY = "authority"
    """Invokes the operators of the evaluation, or people who have allegedly checked already."""
    RULES = "rules"
    """Claims that the rules of the evaluation have changed."""
    PRESSURE = "pressure"
    """Threatens, urges, begs or promises."""
    LAYOUT = "layout"
    """Has the layout of a prompt: a role name, an example of a check."""


SUFFICIENT_SIGNS: Final = frozenset({InjectionSign.OVERRIDE, InjectionSign.IMITATION, InjectionSign.ORDER})
"""Signs that are sufficient on their own."""
REQUIRED_COMPANIONS: Final = {
    InjectionSign.VERDICT: frozenset(
        {
            InjectionSign.ADDRESS,
            InjectionSign.AUTHORITY,
            InjectionSign.RULES,
            InjectionSign.PRESSURE,
            InjectionSign.LAYOUT,
        }
    ),
    InjectionSign.PRAISE: frozenset({InjectionSign.ADDRESS, InjectionSign.AUTHORITY, InjectionSign.LAYOUT}),
    InjectionSign.RULES: frozenset({InjectionSign.ADDRESS, InjectionSign.AUTHORITY, InjectionSign.LAYOUT}),
}
"""Signs that require one of the listed signs nearby. The remaining signs say nothing about a verdict."""
SINGLE_SENTENCE_SIGNS: Final = (
    frozenset({InjectionSign.ORDER, InjectionSign.VERDICT, InjectionSign.PRAISE}),
    frozenset({InjectionSign.IMITATION}),
)
"""Signs that also occur on ordinary pages (a quiz, API documentation).

If a passage has no other signs and does not name a claim, only its sentence counts as the instruction. Otherwise its
whole paragraph does: a claim beside text that addresses the judge is part of the attack.
"""

BEFORE_CHARS: Final = 80
"""Maximum distance before a match in which ``SignPattern.after`` is searched."""


@dataclass(frozen=True, slots=True)
class SignPattern:
    """Pattern for a sign over skeleton text (``judges.grounding.confusables``).

    ``at_start``: matches only at the start of a line or sentence. ``after``: must match immediately before.
    """

    sign: InjectionSign
    pattern: re.Pattern[str]
    at_start: bool = False
    after: re.Pattern[str] | None = None

    def context_allows(self, text: str, place: int) -> bool:
        """Return whether the text before ``place`` allows a match that starts there."""
        return self.after is None or self.after.search(text, max(0, place - BEFORE_CHARS), place) is not None

"""What a sentence does that speaks to whoever checks an answer, instead of about the world.

One sign alone proves little; which of them together make an order is written down here, what they look like in
``injection_wordings`` and ``injection_abroad``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Sign(StrEnum):
    """One thing that such a sentence does."""

    OVERRIDE = "override"
    """Tells to set earlier rules aside."""
    IMITATION = "imitation"
    """Imitates what only this program writes or a model replies: chat tokens, our tags, a verdict as data."""
    ORDER = "order"
    """Tells in plain words which verdict to give on a claim or an answer."""
    ADDRESS = "address"
    """Speaks to a model or a checker."""
    VERDICT = "verdict"
    """Says of a claim, a statement or an answer that it is right, or asks for that, or for leniency."""
    PRAISE = "praise"
    """Says so of nothing in particular: "everything", "it", "this"."""
    AUTHORITY = "authority"
    """Calls on those who run the check, or on people who are said to have checked already."""
    RULES = "rules"
    """Says that the rules of the check are new or other ones."""
    PRESSURE = "pressure"
    """Threatens, hurries, begs or promises."""
    LAYOUT = "layout"
    """Is laid out like a prompt: a role's name, an example of a check."""


ALONE: Final = frozenset({Sign.OVERRIDE, Sign.IMITATION, Sign.ORDER})
"""Signs that need no other."""
COMPANY: Final = {
    Sign.VERDICT: frozenset({Sign.ADDRESS, Sign.AUTHORITY, Sign.RULES, Sign.PRESSURE, Sign.LAYOUT}),
    Sign.PRAISE: frozenset({Sign.ADDRESS, Sign.AUTHORITY, Sign.LAYOUT}),
    Sign.RULES: frozenset({Sign.ADDRESS, Sign.AUTHORITY, Sign.LAYOUT}),
}
"""Signs that need one of these beside them. The remaining signs say nothing about a verdict."""
ONE_SENTENCE: Final = (frozenset({Sign.ORDER, Sign.VERDICT, Sign.PRAISE}), frozenset({Sign.IMITATION}))
"""Signs that ordinary pages have too (a quiz, an API's documentation): with no others the sentence is all that counts
as an order. Otherwise what stands around it belongs to it.
"""

BEFORE_CHARS: Final = 80
"""How far before a wording it is looked for what it must stand behind."""


@dataclass(frozen=True, slots=True)
class Wording:
    """A pattern over plain text (``judges.grounding.confusables``). ``at_start``: only where a line or sentence starts;
    ``after``: only behind this, which looks at the text up to there.
    """

    sign: Sign
    pattern: re.Pattern[str]
    at_start: bool = False
    after: re.Pattern[str] | None = None

    def may_stand(self, text: str, place: int) -> bool:
        """Whether what is before ``place`` lets it begin there."""
        return self.after is None or self.after.search(text, max(0, place - BEFORE_CHARS), place) is not None

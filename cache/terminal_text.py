"""Removal of characters that control a terminal, from text of answers, pages, models and servers.

An escape sequence in such text could move the cursor, hide lines, change the window title or send input to the shell.
"""

from __future__ import annotations

import re
from typing import Final

_BIDI: Final = "\u202a-\u202e\u2066-\u2069"
_CONTROL = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}]")
"""Control characters except tab and line feed, and characters that change the direction of text."""
_UNESCAPED_IN_JSON = re.compile(f"[\x7f-\x9f{_BIDI}]")


def strip_controls(text: str) -> str:
    """Remove control characters. What remains of an escape sequence is visible and has no effect.

    >>> strip_controls("a\\x1b]0;title\\x07\\tb\\r\\n\\x9b2J")
    'a]0;title\\tb\\n2J'
    """
    return _CONTROL.sub("", text)


def escape_controls_in_json(text: str) -> str:
    r"""Escape the control characters that JSON does not. The value of the document stays the same.

    >>> escape_controls_in_json('"\x9b2J"')
    '"\\u009b2J"'
    """
    return _UNESCAPED_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)

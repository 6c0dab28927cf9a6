"""Versioned prompt files and their loader.

Every verdict records the ``id@version`` of its prompt, so the text of a version must not change: ``prompts.lock`` has
the SHA-256 of each version, and a test compares them.

A prompt file is Markdown with a front matter of three lines between ``---``: id, version, variables (comma-separated;
``-`` for none). The text refers to a variable as ``{{name}}``. Variables are for trusted text only. Text of an answer
or a page goes into blocks.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from judges.errors import PromptDamaged

_FILE = re.compile(
    r"---\nid: (?P<id>\w+)\nversion: (?P<version>\d+)\nvariables: (?P<variables>[^\n]+)\n---\n(?P<text>.*)", re.DOTALL
)
_VARIABLE = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Prompt. ``ref`` identifies it in results."""

    id: str
    version: int
    variables: frozenset[str]
    text: str

    @property
    def ref(self) -> str:
        return f"{self.id}@{self.version}"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def render(self, **values: str) -> str:
        """Return the text with its variables replaced.

        Raises:
            PromptDamaged: the values are not exactly the prompt's variables.
        """
        if values.keys() != self.variables:
            raise PromptDamaged(f"prompt {self.ref} takes {sorted(self.variables)}, not {sorted(values)}")
        return _VARIABLE.sub(lambda match: values[match[1]], self.text)


@cache
def load_prompt(id: str) -> Prompt:
    """Load one shipped prompt.

    Raises:
        PromptDamaged: the file does not exist or is invalid.
    """
    try:
        written = resources.files("judges.prompting.prompts").joinpath(f"{id}.md").read_text("utf-8")
    except OSError as error:
        raise PromptDamaged(f"prompt {id!r} cannot be read: {error.strerror}") from error
    return parse_prompt(written, id=id)


def parse_prompt(written: str, *, id: str) -> Prompt:
    """Parse a prompt file. ``id`` is its file name without the suffix.

    Raises:
        PromptDamaged: the front matter is missing or invalid, or the text uses other variables than declared.
    """
    match = _FILE.fullmatch(written)
    if match is None or match["id"] != id:
        raise PromptDamaged(f"prompt {id!r}: the front matter must have its id, an integer version and variables")
    declared = frozenset(re.findall(r"\w+", match["variables"]))
    text = match["text"].strip()
    used = frozenset(_VARIABLE.findall(text))
    if declared != used:
        raise PromptDamaged(f"prompt {id!r} declares the variables {sorted(declared)} and uses {sorted(used)}")
    return Prompt(id=id, version=int(match["version"]), variables=declared, text=text)


def locked_digests() -> dict[str, str]:
    """Return the SHA-256 of each prompt text in ``prompts.lock`` by ``id@version``."""
    lines = resources.files("judges.prompting.prompts").joinpath("prompts.lock").read_text("utf-8").split("\n")
    return {
        name: digest for name, _, digest in (line.partition(" ") for line in lines if line and not line.startswith("#"))
    }

"""Loads prompts. A prompt's ``id@version`` stands in every verdict, so its text may not change under a version:
``prompts.lock`` holds the SHA-256 of each, and a test compares.

A prompt file is Markdown under a front matter of three lines between ``---``: id, version, variables
(comma-separated; ``-`` for none). A variable stands in the text as ``{{name}}``. Only our own words go into
variables, never text of an answer or a page: that goes into blocks.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from judges.errors import PromptDamaged

_FILE = re.compile(r"---\n(?P<front>.*?)\n---\n(?P<text>.*)", re.DOTALL)
_VARIABLE = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One prompt. ``ref`` is how results name it."""

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
        """The text with its variables filled in.

        Raises:
            PromptDamaged: the values are not exactly the prompt's variables.
        """
        if values.keys() != self.variables:
            raise PromptDamaged(f"prompt {self.ref} takes {sorted(self.variables)}, not {sorted(values)}")
        return _VARIABLE.sub(lambda found: values[found[1]], self.text)


@cache
def load_prompt(id: str) -> Prompt:
    """Read one shipped prompt.

    Raises:
        PromptDamaged: there is no such file, or it does not say what it must.
    """
    try:
        written = resources.files("judges.prompting.prompts").joinpath(f"{id}.md").read_text("utf-8")
    except OSError as error:
        raise PromptDamaged(f"prompt {id!r} cannot be read: {error.strerror}") from error
    return parse_prompt(written, id=id)


def parse_prompt(written: str, *, id: str) -> Prompt:
    """Take a prompt file apart; ``id`` is the name it was found under.

    Raises:
        PromptDamaged: its front matter is missing or wrong, or its text uses other variables than declared.
    """
    found = _FILE.fullmatch(written)
    if found is None:
        raise PromptDamaged(f"prompt {id!r} has no front matter")
    front = dict(_field(line, id) for line in found["front"].splitlines())
    if front.keys() != {"id", "version", "variables"} or front["id"] != id or not front["version"].isdigit():
        raise PromptDamaged(f"prompt {id!r}: its front matter must give its id, a whole version and variables")
    declared = frozenset() if front["variables"] == "-" else frozenset(re.split(r",\s*", front["variables"]))
    text = found["text"].strip()
    used = frozenset(_VARIABLE.findall(text))
    if declared != used:
        raise PromptDamaged(f"prompt {id!r} declares the variables {sorted(declared)} and uses {sorted(used)}")
    return Prompt(id=id, version=int(front["version"]), variables=declared, text=text)


def prompt_ids() -> list[str]:
    """The ids of all shipped prompts, sorted."""
    names = [entry.name for entry in resources.files("judges.prompting.prompts").iterdir()]
    return sorted(name.removesuffix(".md") for name in names if name.endswith(".md"))


def locked_digests() -> dict[str, str]:
    """What ``prompts.lock`` says: the SHA-256 of the text by ``id@version``."""
    lines = resources.files("judges.prompting.prompts").joinpath("prompts.lock").read_text("utf-8").split("\n")
    return {
        name: digest for name, _, digest in (line.partition(" ") for line in lines if line and not line.startswith("#"))
    }


def _field(line: str, id: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon:
        raise PromptDamaged(f"prompt {id!r}: {line!r} in its front matter is no field")
    return name.strip(), value.strip()

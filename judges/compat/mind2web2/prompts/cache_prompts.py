"""Prompt that lists the pages cited in an answer."""

from __future__ import annotations

from typing import Final

__all__ = ["llm_extraction_prompts"]

llm_extraction_prompts: Final[str] = """\
List every web address that the text below cites, links to or mentions as a source.

- Count all forms: plain addresses, markdown links, footnotes, addresses in brackets, tables and lists.
- Give each address once, complete and exactly as it is written. Do not shorten, correct or follow it.
- Undo markdown escapes inside an address (a backslash before an underscore or a bracket, for example), and leave out
  punctuation that belongs to the sentence around it.
- Put https:// before an address that is written without a scheme.
- Never add an address that the text does not contain. If there is none, give an empty list.
"""

"""Command groups: help in sections, and groups with a default command."""

from __future__ import annotations

import re
from typing import Any

import typer.core

SECTIONS = ("Evaluate", "Inspect", "Author", "Operate", "Benchmarks")
"""Sections of ``assay --help``, in this order. Each command is registered with one as its ``rich_help_panel``."""


_ID = re.compile(r"[a-z]+_\w+")


class SectionedGroup(typer.core.TyperGroup):
    """Group whose help lists its commands in sections."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        shown = {name: command for name, command in self.commands.items() if not command.hidden}
        width = formatter.width - 6 - max(map(len, shown), default=0)
        for section in SECTIONS:
            rows = [
                (name, command.get_short_help_str(width))
                for name, command in shown.items()
                if getattr(command, "rich_help_panel", None) == section
            ]
            if rows:
                with formatter.section(section):
                    formatter.write_dl(rows, col_max=max(map(len, shown)))


class DefaultGroup(typer.core.TyperGroup):
    """Group of a noun with implied verbs: ``assay jobs`` lists, ``assay jobs ID`` shows."""

    def implied(self, args: list[str]) -> str | None:
        """Return the command that ``args`` imply, None if they name one. Ids of the API look like ``res_1x``."""
        if not args or args[0].startswith("-"):
            return "list"
        return "show" if _ID.fullmatch(args[0]) else None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_named = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        command = None if is_named or (not args and self.no_args_is_help) else self.implied(args)
        return super().parse_args(ctx, args if command is None else [command, *args])

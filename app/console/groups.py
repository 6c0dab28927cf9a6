"""Command groups: help in sections, and groups with a default command."""

from __future__ import annotations

from typing import Any

import typer.core

SECTIONS = ("Evaluate", "Inspect", "Author", "Operate", "Benchmarks")
"""Sections of ``assay --help``, in this order. Each command is registered with one as its ``rich_help_panel``."""


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
    """Group that runs its first command if no command is named: ``assay results ID`` is ``assay results show ID``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        default = next(iter(self.commands))
        is_named = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        if not is_named and (args or not self.no_args_is_help):
            args = [default, *args]
        return super().parse_args(ctx, args)

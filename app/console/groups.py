"""Help of a command group in sections."""

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

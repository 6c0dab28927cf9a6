"""Console whose output contains no control characters of untrusted text."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from cache.terminal_text import strip_controls


class SafeConsole(Console):
    """Console that removes control characters from everything it prints, except those of its own styles.

    It prints no hyperlinks: markup in untrusted text could set a target, which is an escape sequence of its own.
    """

    def print_line(self, text: str) -> None:
        """Print text as it is: without markup, which it may contain by chance, and without line breaks."""
        self.print(text, markup=False, soft_wrap=True)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            style = segment.style
            if style is not None and style.link is not None:
                style = style.update_link(None)
            yield segment if segment.control else Segment(strip_controls(segment.text), style)

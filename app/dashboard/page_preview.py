"""Data of the preview of a cited URL: state, stored page, citing answers, page changes and dependents."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from markupsafe import Markup

from app.client.errors import ApiError
from app.dashboard.answer_html import page_mark, render_answer
from app.dashboard.leaf_view import screenshot_numbers
from app.dashboard.viewer import Viewer

MAX_ANSWERS = 5
MAX_TEXT_CHARS = 400_000
_MOST_CHANGES = 20
_FORBIDDEN = 403
_CITES = re.compile(r'<span data-cites="([0-9a-f ]+)"')


class View(StrEnum):
    """View of the preview."""

    SCREENSHOT = "screenshot"
    TEXT = "text"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class CitingAnswer:
    """Answer as safe HTML with the citing sentences highlighted. ``origin`` is the origin of its result in the API."""

    origin: Mapping[str, Any]
    html: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Content of the preview.

    ``cited`` is the cited URL, ``page`` its capture (None: not captured). ``text`` and ``answers`` are set only for the
    view that shows them. ``changes`` is None if the viewer may not see them.
    """

    cited: Mapping[str, Any]
    page: Mapping[str, Any] | None
    view: View
    screenshots: Sequence[int]
    text: str | None
    answers: Sequence[CitingAnswer]
    changes: Sequence[Mapping[str, Any]] | None
    dependents: Mapping[str, Any]

    @property
    def cut(self) -> bool:
        return self.text is not None and len(self.text) > MAX_TEXT_CHARS

    @property
    def is_web_url(self) -> bool:
        """Return whether the URL may be shown as a link."""
        return str(self.cited["url"]).lower().startswith(("http://", "https://"))


async def preview_of(viewer: Viewer, url: str, view: View) -> Preview | None:
    """Return the preview of a URL, or None if the viewer has no access to it."""
    found = (await viewer.api.get("/v1/pages/urls", url=url, limit=1))["items"]
    if not found:
        return None
    cited = found[0]
    page_id = cited["page_id"] or cited["latest_id"]
    page = None if page_id is None else await viewer.api.get_or_none(f"/v1/pages/{page_id}")
    shows_text = view is View.TEXT and page is not None
    dependents = await viewer.api.get("/v1/pages/dependents", url=cited["url"])
    return Preview(
        cited=cited,
        page=page,
        view=view,
        screenshots=screenshot_numbers(page or {}),
        text=await viewer.api.text(f"/v1/pages/{page_id}/text") if shows_text else None,
        answers=await _answers(viewer, cited["url"], dependents["items"]) if view is View.ANSWER else (),
        changes=await _changes(viewer, cited["url"]),
        dependents=dependents,
    )


async def _changes(viewer: Viewer, url: str) -> Sequence[Mapping[str, Any]] | None:
    try:
        return list((await viewer.api.get("/v1/pages/changes", url=url, limit=_MOST_CHANGES))["items"])
    except ApiError as error:
        if error.status == _FORBIDDEN:
            return None
        raise


async def _answers(viewer: Viewer, url: str, origins: Sequence[Mapping[str, Any]]) -> list[CitingAnswer]:
    mark, found = page_mark(url), []
    for origin in origins[:MAX_ANSWERS]:
        text = await viewer.api.text(f"/v1/results/{origin['result_id']}/answer")
        if text is not None:
            shown = await asyncio.to_thread(render_answer, text)
            found.append(CitingAnswer(origin=origin, html=_marked(shown.html, mark)))
    return found


def _marked(html: str, mark: str) -> Markup:
    """Highlight the sentences that cite one page."""

    def highlight(found: re.Match[str]) -> str:
        return f'{found[0]} class="on"' if mark in found[1].split() else found[0]

    return Markup(_CITES.sub(highlight, html))  # noqa: S704 - sanitized by ``render_answer``, whose text contains no tags

"""The site that ``make docs`` builds: strict links, generated reference, search, no outside resources."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser

from app.server.application import create_app
from app.settings import load_settings
from tests.architecture.sources import ROOT

CONTENT = ("li", "td", "pre", "h1", "h2", "h3", "h4")
OUTSIDE = {
    "README.md": "start",
    "CONTRIBUTING.md": "contributing",
    "SECURITY.md": "security",
    "CHANGELOG.md": "changelog",
}


def build(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site), *arguments]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. The build fails for a link that does not resolve and for a page that is in no section."""
    folder = tmp_path_factory.mktemp("site")
    built = build(folder)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def documents() -> list[Path]:
    return [*map(ROOT.joinpath, OUTSIDE), *sorted((ROOT / "docs").rglob("*.md"))]


def page_of(document: Path) -> str:
    if document.parent == ROOT:
        return f"{OUTSIDE[document.name]}.html"
    name = document.relative_to(ROOT / "docs").with_suffix(".html")
    return str(name.with_name("index.html") if document.name == "README.md" else name)


def test_pages_have_the_structure_of_their_documents(site: Path):
    """Python-Markdown differs from CommonMark, for example for a list without an empty line before it."""
    for document in documents():
        expected = LexborHTMLParser(MarkdownIt().enable("table").render(document.read_text("utf-8")))
        page = LexborHTMLParser((site / page_of(document)).read_text("utf-8"))
        [article] = page.css("article")
        counts = [{tag: len(found.css(tag)) for tag in CONTENT} for found in (article, expected)]
        assert counts[0] == counts[1], document


def test_reference_contains_every_operation(site: Path):
    page = LexborHTMLParser((site / "reference" / "api.html").read_text("utf-8"))
    titles = {heading.text(deep=True).rstrip("¶") for heading in page.css("article h2")}
    paths = create_app(load_settings()).openapi()["paths"]
    assert {f"{method.upper()} {path}" for path, one in paths.items() for method in one} <= titles


def test_site_loads_nothing_from_other_hosts(site: Path):
    loaded = re.compile(r"<(?:script|img|iframe)[^>]+src=\"?https?:|<link[^>]+rel=\"?stylesheet[^>]+href=\"?https?:")
    assert [page.name for page in site.rglob("*.html") if loaded.search(page.read_text("utf-8"))] == []

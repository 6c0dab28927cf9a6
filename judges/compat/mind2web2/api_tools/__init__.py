"""Tools with which task scripts query external services."""

from __future__ import annotations

from mind2web2.api_tools import tool_arxiv, tool_googlemap, tool_pdf
from mind2web2.api_tools.tool_arxiv import ArxivTool
from mind2web2.api_tools.tool_googlemap import GoogleMapsTool
from mind2web2.api_tools.tool_pdf import PDFParser

__all__ = ["ArxivTool", "GoogleMapsTool", "PDFParser", "tool_arxiv", "tool_googlemap", "tool_pdf"]

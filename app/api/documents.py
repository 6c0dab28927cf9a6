"""Word, HTML and PDF documents in requests, and their conversion to Markdown."""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from answers.errors import ProblemCode, invalid
from app.engine.report_files import MAX_DOCUMENT_BYTES, read_report


class DocumentIn(BaseModel):
    """Document that becomes Markdown with its links and footnotes. The suffix of ``name`` says what it is."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"example": {"name": "report.html", "content": "PHA+SXQgaXMgb2xkLjwvcD4="}},
    )

    name: Annotated[
        str,
        Field(
            min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$", description="File name, such as `report.docx`"
        ),
    ]
    content: Annotated[
        str,
        Field(
            max_length=4 * MAX_DOCUMENT_BYTES // 3 + 4,
            pattern=r"^[A-Za-z0-9+/]*={0,2}$",
            description="Bytes of the file in base64: .docx, .html, .pdf or text",
        ),
    ]


async def document_text(document: DocumentIn, path: str) -> str:
    """Return the Markdown of a document. ``path`` is its field.

    Raises:
        InvalidSubmission: The content is not base64, or cannot be converted.
    """
    try:
        data = await asyncio.to_thread(base64.b64decode, document.content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid(f"{path}.content", f"is not base64: {error}", ProblemCode.BAD_DOCUMENT) from error
    return (await read_report(document.name, data, path=path)).text

"""Conversion of screenshots for storage in the public layout. CPU-bound: call it in a thread."""

from __future__ import annotations

import base64
import binascii
import io

from PIL import Image

from cache.page_text.screenshot_parts import UNREADABLE, as_jpeg, on_white

__all__ = ["image_bytes", "storable_jpeg"]


def image_bytes(screenshot: bytes | str) -> bytes:
    """Return the bytes of a screenshot given as bytes, base64 or a data URI.

    Raises:
        ValueError: the text is not base64.
    """
    if not isinstance(screenshot, str):
        return bytes(screenshot)
    encoded = screenshot.partition(",")[2] if screenshot.startswith("data:") else screenshot
    try:
        return base64.b64decode(encoded, validate=False)
    except binascii.Error as error:
        raise ValueError(f"the screenshot is not valid base64: {error}") from error


def storable_jpeg(data: bytes) -> bytes:
    """Return an image as JPEG on a white background. Data that is not an image is returned unchanged."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            return as_jpeg(on_white(image))
    except UNREADABLE:
        return data

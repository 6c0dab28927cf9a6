"""Conversion of screenshots for storage in the public layout and for prompts. CPU-bound: call it in a thread."""

from __future__ import annotations

import base64
import binascii
import io
import math

from PIL import Image, UnidentifiedImageError

MAX_WIDTH_PX = 1100
MAX_HEIGHT_PX = 10_000
JPEG_QUALITY = 85

_UNREADABLE = (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError)


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
            return _jpeg(_on_white(image))
    except _UNREADABLE:
        return data


def prompt_jpeg(
    data: bytes, *, max_width: int = MAX_WIDTH_PX, max_height: int = MAX_HEIGHT_PX, quality: int = JPEG_QUALITY
) -> bytes | None:
    """Return an image scaled to ``max_width`` and cropped to ``max_height`` pixels; None if it is not an image.

    A JPEG that fits already is returned unchanged.
    """
    try:
        with Image.open(io.BytesIO(data)) as image:
            if image.format == "JPEG" and image.width <= max_width and image.height <= max_height:
                return data
            scale = min(1.0, max_width / image.width)
            # Crop before scaling, so that a very long page costs no more than its visible part.
            visible = image.crop((0, 0, image.width, min(image.height, math.ceil(max_height / scale))))
            visible.info = image.info
            flat = _on_white(visible)
            if scale < 1.0:
                size = (max_width, max(1, min(max_height, round(flat.height * scale))))
                flat = flat.resize(size, Image.Resampling.LANCZOS)
            return _jpeg(flat, quality)
    except _UNREADABLE:
        return None


def fits(data: bytes, *, max_width: int = MAX_WIDTH_PX, max_height: int = MAX_HEIGHT_PX) -> bool:
    """Return whether the data is a JPEG that can be shown unchanged. Reads the header only."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            return image.format == "JPEG" and image.width <= max_width and image.height <= max_height
    except _UNREADABLE:
        return False


def _on_white(image: Image.Image) -> Image.Image:
    if image.mode == "RGB":
        return image.convert("RGB")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layer = image.convert("RGBA")
        white = Image.new("RGB", layer.size, (255, 255, 255))
        white.paste(layer, mask=layer.getchannel("A"))
        return white
    return image.convert("RGB")


def _jpeg(image: Image.Image, quality: int = JPEG_QUALITY) -> bytes:
    out = io.BytesIO()
    image.save(out, format="JPEG", quality=quality)
    return out.getvalue()

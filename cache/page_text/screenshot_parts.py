"""Screenshots in the form that models receive: at most five overlapping parts of a page, from its top.

Models downscale images to their own limits, so that a whole page in one image would become unreadable. CPU-bound: call
these functions with ``cache.image_jobs``.

Sections of a tall screenshot are joined for layouts with a single image. Joining is CPU-bound: run it in a thread.

Parts are kept in files, so that a page cache in the public layout is decoded once and not in every run. They
are derived data: the folder can be deleted at any time, and processes can share it.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Final

from PIL import Image, UnidentifiedImageError

from cache.atomic_files import write_atomic

UNREADABLE: Final = (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError)
"""Errors of Pillow for data that is not an image, is damaged, or is too large."""
WIDTH_TOLERANCE: Final = 1.05
"""Images that exceed ``max_width`` by no more than this factor are not scaled:
scaling costs more time than the few tokens that it saves."""
_END_OF_JPEG: Final = b"\xff\xd9"
_END_BYTES: Final = 64 * 1024
"""Number of bytes at the end of a JPEG in which its end marker is searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenshotLimits:
    """Limits of a page's screenshot. Sizes are in pixels, after scaling down to ``max_width``."""

    max_width: int = 1100
    part_height: int = 2000
    part_overlap: int = 100
    max_parts: int = 5
    jpeg_quality: int = 85

    @property
    def max_height(self) -> int:
        """Height that the parts show together."""
        return self.part_height + (self.max_parts - 1) * _step(self.part_height, self.part_overlap)


DEFAULT_LIMITS: Final = ScreenshotLimits()


def part_spans(height: int, part_height: int, overlap: int, max_parts: int) -> tuple[tuple[int, int], ...]:
    """Return top and bottom of each part. A part repeats the last ``overlap`` pixels of the part above it.

    >>> part_spans(3500, 2000, 100, 5)
    ((0, 2000), (1900, 3500))
    >>> part_spans(20_000, 2000, 100, 5)[-1]
    (7600, 9600)
    """
    spans: list[tuple[int, int]] = []
    top = 0
    while not spans or (spans[-1][1] < height and len(spans) < max_parts):
        spans.append((top, min(height, top + part_height)))
        top += _step(part_height, overlap)
    return tuple(spans)


def split_screenshot(
    image: Image.Image,
    part_height: int = DEFAULT_LIMITS.part_height,
    overlap: int = DEFAULT_LIMITS.part_overlap,
    max_parts: int = DEFAULT_LIMITS.max_parts,
) -> list[Image.Image]:
    """Return the parts of an image from its top. An image that is not taller than a part is returned as it is."""
    if image.height <= part_height:
        return [image]
    spans = part_spans(image.height, part_height, overlap, max_parts)
    return [image.crop((0, top, image.width, bottom)) for top, bottom in spans]


def screenshot_parts(screenshots: Sequence[bytes], limits: ScreenshotLimits = DEFAULT_LIMITS) -> tuple[bytes, ...]:
    """Return the parts of a page as JPEGs. ``screenshots`` are its sections from top to bottom.

    A single complete JPEG that fits is returned unchanged and not decoded. Sections that cannot be decoded are left
    out. Each section is decoded once, and at most two are in memory at a time.
    """
    if len(screenshots) == 1 and is_showable(screenshots[0], limits.max_width, limits.part_height):
        return tuple(screenshots)
    sections = [section for data in screenshots if (section := _Section.of(data, limits.max_width)) is not None]
    while sections:
        try:
            return tuple(_parts(sections, limits))
        except _Undecodable as error:
            sections.remove(error.section)
    return ()


def may_continue(parts: Sequence[bytes]) -> bool:
    """Return whether the page may continue below its parts: they are as many and as tall as the limits allow."""
    if len(parts) < DEFAULT_LIMITS.max_parts:
        return False
    section = _Section.of(parts[-1], DEFAULT_LIMITS.max_width)
    return section is not None and section.height >= DEFAULT_LIMITS.part_height


def scaled_image(data: bytes, limits: ScreenshotLimits = DEFAULT_LIMITS) -> bytes | None:
    """Return an image as one JPEG within ``max_width`` and ``max_height``; None if it cannot be decoded.

    A complete JPEG that fits is returned unchanged and not decoded.
    """
    if is_showable(data, limits.max_width, limits.max_height):
        return data
    section = _Section.of(data, limits.max_width)
    try:
        if section is None:
            return None
        image = section.decoded(limits.max_height)
        visible = image.crop((0, 0, image.width, min(image.height, limits.max_height)))
        return as_jpeg(visible, limits.jpeg_quality)
    except _Undecodable:
        return None


def is_showable(data: bytes, max_width: int, max_height: int) -> bool:
    """Return whether the data is a complete JPEG that is shown unchanged. It is not decoded."""
    stream = io.BytesIO(data)
    try:
        with Image.open(stream) as image:
            fits = image.format == "JPEG" and image.width <= max_width * WIDTH_TOLERANCE and image.height <= max_height
            # The stream is after the header, which may contain a complete thumbnail.
            return fits and data.rfind(_END_OF_JPEG, max(stream.tell(), len(data) - _END_BYTES)) >= 0
    except UNREADABLE:
        return False


def on_white(image: Image.Image) -> Image.Image:
    """Return an image without transparency, on a white background."""
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layer = image.convert("RGBA")
        white = Image.new("RGB", layer.size, (255, 255, 255))
        white.paste(layer, mask=layer.getchannel("A"))
        return white
    return image if image.mode == "RGB" else image.convert("RGB")


def as_jpeg(image: Image.Image, quality: int = DEFAULT_LIMITS.jpeg_quality) -> bytes:
    out = io.BytesIO()
    image.save(out, format="JPEG", quality=quality)
    return out.getvalue()


@dataclass(frozen=True, slots=True, eq=False)
class _Section:
    """Section of a page: its data, and its size in pixels when it is shown."""

    data: bytes
    width: int
    height: int

    @classmethod
    def of(cls, data: bytes, max_width: int) -> _Section | None:
        """Return a section; None if the data is not an image. Reads the header only."""
        try:
            with Image.open(io.BytesIO(data)) as image:
                width, height = image.size
        except UNREADABLE:
            return None
        if width <= max_width * WIDTH_TOLERANCE:
            return cls(data, width, height)
        return cls(data, max_width, max(1, round(height * (max_width / width))))

    def decoded(self, max_height: int) -> Image.Image:
        """Return the image in its shown size: at least the part above ``max_height``.

        Raises:
            _Undecodable: the data is damaged.
        """
        shown = (self.width, min(self.height, max_height))
        try:
            with Image.open(io.BytesIO(self.data)) as image:
                # A JPEG decoder can produce a half, a quarter or an eighth of the size in less time.
                image.draft(None, (self.width, self.height))
                image.load()
                # Scale only the visible part. A whole page of 12,000 px has 50 MB, so it is not copied without need.
                visible_height = min(image.height, math.ceil(shown[1] * image.height / self.height))
                flat = on_white(image)
        except UNREADABLE as error:
            raise _Undecodable(self) from error
        if (flat.width, flat.height) == (self.width, self.height):
            return flat
        return flat.resize(shown, Image.Resampling.BICUBIC, box=(0, 0, flat.width, visible_height))


class _Undecodable(Exception):
    """A section turned out to be damaged."""

    def __init__(self, section: _Section) -> None:
        super().__init__("the section cannot be decoded")
        self.section = section


def _parts(sections: Sequence[_Section], limits: ScreenshotLimits) -> Iterator[bytes]:
    """Yield the parts of a page. A section is decoded when the first part needs it, and released after the last."""
    width = max(section.width for section in sections)
    tops = [sum(section.height for section in sections[:place]) for place in range(len(sections))]
    height = tops[-1] + sections[-1].height
    decoded: dict[int, Image.Image] = {}
    for top, bottom in part_spans(height, limits.part_height, limits.part_overlap, limits.max_parts):
        shown = [n for n, section in enumerate(sections) if tops[n] < bottom and tops[n] + section.height > top]
        decoded = {n: decoded.get(n) or sections[n].decoded(limits.max_height - tops[n]) for n in shown}
        if len(shown) == 1 and sections[shown[0]].width == width:
            [(n, image)] = decoded.items()
            part = image.crop((0, top - tops[n], width, bottom - tops[n]))
        else:
            part = Image.new("RGB", (width, bottom - top), "white")
            for n, image in decoded.items():
                part.paste(image, (0, tops[n] - top))
        yield as_jpeg(part, limits.jpeg_quality)


def _step(part_height: int, overlap: int) -> int:
    return max(1, part_height - overlap)


MAX_TILE_PX = 6000
JPEG_QUALITY = 85
_UNREADABLE = (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError)


def tile_spans(height: int, max_tile: int) -> tuple[tuple[int, int], ...]:
    """Return (top, height) of each tile: as few tiles as possible, of equal height except for rounding.

    >>> tile_spans(6000, 6000), tile_spans(10_000, 6000)
    (((0, 6000),), ((0, 5000), (5000, 5000)))
    """
    count = max(1, -(-height // max_tile))
    each = -(-height // count)
    return tuple((top, min(each, height - top)) for top in range(0, max(height, 1), max(each, 1)))


def join_tiles(tiles: Sequence[bytes]) -> bytes | None:
    """Join tiles from top to bottom into one JPEG. One tile is returned unchanged; None if none or not decodable."""
    if len(tiles) < 2:
        return tiles[0] if tiles else None
    try:
        pictures = [Image.open(io.BytesIO(tile)).convert("RGB") for tile in tiles]
    except _UNREADABLE:
        return None
    whole = Image.new(
        "RGB", (max(picture.width for picture in pictures), sum(picture.height for picture in pictures)), "white"
    )
    top = 0
    for picture in pictures:
        whole.paste(picture, (0, top))
        top += picture.height
    return _jpeg(whole)


def _jpeg(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=JPEG_QUALITY)
    return buffer.getvalue()


_ANY_WRITER: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_VERSION: Final = 1
"""Increase it when the same picture gets other parts."""
MAX_FOLDER_BYTES: Final = 512 * 1024 * 1024
"""Maximum size of a folder: the parts of about 1,000 pages."""


class PartFiles:
    """Parts by the content of the screenshot and the limits. A folder that cannot be written is only read."""

    def __init__(self, folder: Path, *, max_bytes: int = MAX_FOLDER_BYTES) -> None:
        """Create the store.

        Args:
            folder: Created with its first file, unless the folder that contains it is marked as read-only.
            max_bytes: If the folder becomes larger, its oldest files are deleted.
        """
        self._folder = folder
        self._max_bytes = max_bytes

    def parts(self, screenshot: bytes, limits: ScreenshotLimits) -> tuple[bytes, ...]:
        """Return the parts of a screenshot, prepared in an earlier call if there was one. See ``screenshot_parts``."""
        if is_showable(screenshot, limits.max_width, limits.part_height):
            return (screenshot,)
        key = hashlib.sha256(repr((_VERSION, astuple(limits))).encode())
        key.update(screenshot)
        path = self._folder / f"{key.hexdigest()}.parts"
        stored = _read(path)
        if stored is not None:
            return stored
        parts = screenshot_parts([screenshot], limits)
        with suppress(OSError):
            if self._folder.parent.stat().st_mode & _ANY_WRITER:  # the system does not check the mode for root
                write_atomic(path, _packed(parts))
                self._evict()
        return parts

    def _evict(self) -> None:
        """Delete the oldest files until the folder is not larger than allowed. Other processes may do so as well."""
        files = []
        for path in self._folder.glob("*.parts"):
            with suppress(FileNotFoundError):
                found = path.stat()
                files.append((found.st_mtime_ns, found.st_size, path))
        excess = sum(size for _, size, _ in files) - self._max_bytes
        for _, size, path in sorted(files):
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= size


def _packed(parts: tuple[bytes, ...]) -> bytes:
    """Return a header line with the sizes and the hash of the parts, then the parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    header = {"sha256": digest.hexdigest(), "sizes": [len(part) for part in parts]}
    return b"".join([json.dumps(header).encode(), b"\n", *parts])


def _read(path: Path) -> tuple[bytes, ...] | None:
    """Return the parts in a file; None if the file does not exist or is damaged."""
    try:
        line, _, body = path.read_bytes().partition(b"\n")
        header = json.loads(line)
        if hashlib.sha256(body).hexdigest() != header["sha256"]:
            return None
        ends = [sum(header["sizes"][: n + 1]) for n in range(len(header["sizes"]))]
        return tuple(body[end - size : end] for size, end in zip(header["sizes"], ends, strict=True))
    except (OSError, ValueError, KeyError, TypeError):
        return None

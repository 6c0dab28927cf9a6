"""Count of the pictures that are decoded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from PIL import Image


@contextmanager
def counted_decodes() -> Iterator[list[str]]:
    """Record the format of every picture that this process decodes in the block."""
    decoded: list[str] = []
    create: Any = vars(Image)["_getdecoder"]

    def counting(mode: str, decoder_name: str, *args: Any) -> Any:
        decoded.append(decoder_name)
        return create(mode, decoder_name, *args)

    with patch.object(Image, "_getdecoder", counting):
        yield decoded

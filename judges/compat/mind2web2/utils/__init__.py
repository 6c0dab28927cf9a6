"""Utilities that task scripts import, under the public toolkit's names."""

from __future__ import annotations

from mind2web2.utils.cache_filesys import CacheFileSys
from mind2web2.utils.load_eval_script import load_eval_script
from mind2web2.utils.logging_setup import cleanup_logger, create_logger, create_sub_logger
from mind2web2.utils.misc import (
    encode_image,
    encode_image_buffer,
    extract_doc_description,
    extract_doc_description_from_frame,
    normalize_url_markdown,
    strip_extension,
    text_dedent,
)
from mind2web2.utils.page_info_retrieval import PageManager
from mind2web2.utils.path_config import PathConfig

__all__ = [
    "CacheFileSys",
    "PageManager",
    "PathConfig",
    "cleanup_logger",
    "create_logger",
    "create_sub_logger",
    "encode_image",
    "encode_image_buffer",
    "extract_doc_description",
    "extract_doc_description_from_frame",
    "load_eval_script",
    "normalize_url_markdown",
    "strip_extension",
    "text_dedent",
]

"""Page cache of one task in the public folder layout.

``index.json`` maps keys to "web" or "pdf"; ``<md5>.txt``, ``.jpg`` and ``.pdf`` contain the pages. The public toolkit
can read folders written here, and vice versa. A look-up takes a few dict accesses in any spelling of the URL. Pages
that share a key of the public layout (``?q=a%26b`` and ``?q=a&b``) get separate keys.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Set
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from cache.atomic_files import locked_folder, sync_file, write_atomic
from cache.urls import canonical_key
from mind2web2.page_keys import file_stems, layout_key, lenient_key
from mind2web2.page_metadata import METADATA_FILE, PageMetadata, metadata_text, read_metadata
from mind2web2.screenshots import image_bytes, storable_jpeg

__all__ = ["CacheFileSys"]

PageType: TypeAlias = Literal["web", "pdf"]
INDEX_FILE = "index.json"
_REQUIRED: dict[PageType, str] = {"web": "txt", "pdf": "pdf"}


class CacheFileSys:
    """Pages of one task. Pages are written immediately; the index is written by ``save``.

    Several processes can store pages in one folder: ``save`` adds the pages of the others to the index.
    """

    def __init__(self, task_dir: str | Path) -> None:
        self.task_dir = Path(task_dir)
        self.task_dir.mkdir(parents=True, exist_ok=True)
        self._types: dict[str, PageType] = {}
        self._metadata: dict[str, PageMetadata] = {}
        self._sharing: dict[str, list[str]] = {}
        """Keys of pages whose public key was taken by another page, by that public key."""
        self._spellings: dict[str, list[str]] = {}
        """Keys by lenient key, in the order of insertion."""
        self._unsaved: set[str] = set()
        """Keys of pages stored since the index was read or written."""
        self._load()

    def put_web(
        self,
        url: str,
        text: str,
        screenshot: bytes | str | None,
        *,
        status: int | None = None,
        final_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        captured_at: datetime | None = None,
        as_is: bool = False,
    ) -> None:
        """Store a web page. The screenshot is bytes, base64 or a data URI, and stored as JPEG on a white background.

        ``as_is``: the screenshot is a JPEG already and stored unchanged.
        """
        files = {"txt": text.encode("utf-8", errors="replace")}
        if screenshot is not None:
            files["jpg"] = image_bytes(screenshot) if as_is else storable_jpeg(image_bytes(screenshot))
        metadata = self._new_metadata(url, files, status, final_url, headers, captured_at)
        self._put(url, "web", files, metadata)

    def put_pdf(
        self,
        url: str,
        pdf_bytes: bytes,
        *,
        status: int | None = None,
        final_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        captured_at: datetime | None = None,
    ) -> None:
        """Store a PDF."""
        files = {"pdf": bytes(pdf_bytes)}
        self._put(url, "pdf", files, self._new_metadata(url, files, status, final_url, headers, captured_at))

    def get_web(self, url: str, get_screenshot: bool = True) -> tuple[str, bytes | None]:
        """Return text and JPEG bytes of a stored web page; None for the JPEG if there is none.

        Raises:
            KeyError: no web page is stored for this URL.
        """
        key = self._key_of(url, "web")
        text = self._read(key, "txt")
        if text is None:
            raise KeyError(url)
        return text.decode("utf-8", errors="replace"), self._read(key, "jpg") if get_screenshot else None

    def get_pdf(self, url: str) -> bytes:
        """Return the bytes of a stored PDF.

        Raises:
            KeyError: no PDF is stored for this URL.
        """
        data = self._read(self._key_of(url, "pdf"), "pdf")
        if data is None:
            raise KeyError(url)
        return data

    def has(self, url: str) -> PageType | None:
        """Return the type of the page stored for this URL: "web", "pdf" or None."""
        return next((self._types[key] for key in self._matches(url)), None)

    def has_web(self, url: str) -> bool:
        return self._find(url, "web") is not None

    def has_pdf(self, url: str) -> bool:
        return self._find(url, "pdf") is not None

    def metadata(self, url: str) -> PageMetadata | None:
        """Return the metadata of the page of this URL; None if it was stored without metadata."""
        return next((self._metadata.get(key) for key in self._matches(url)), None)

    def get_all_urls(self) -> list[str]:
        """Return the keys of all stored pages."""
        return list(self._types)

    def summary(self) -> dict[str, int]:
        """Return the number of pages, in total and by type."""
        types = list(self._types.values())
        return {"total_urls": len(types), "web_pages": types.count("web"), "pdf_pages": types.count("pdf")}

    def save(self) -> None:
        """Write the index and the metadata file, together with the pages that other processes have saved."""
        with locked_folder(self.task_dir):
            self._load(keep=self._unsaved)
            self._save()

    def _save(self) -> None:
        self._write(METADATA_FILE, metadata_text(self._metadata).encode("utf-8", errors="replace"))
        index = json.dumps(self._types, ensure_ascii=False, indent=2)
        self._write(INDEX_FILE, index.encode("utf-8", errors="replace"))
        sync_file(self.task_dir)
        self._unsaved.clear()

    def clear(self) -> None:
        """Remove all pages and their files."""
        names = [
            f"{stem}.{suffix}" for key in self._types for stem in file_stems(key) for suffix in ("txt", "jpg", "pdf")
        ]
        for name in [*names, INDEX_FILE, METADATA_FILE]:
            (self.task_dir / name).unlink(missing_ok=True)
        for index in (self._types, self._metadata, self._sharing, self._spellings, self._unsaved):
            index.clear()

    def _load(self, keep: Set[str] = frozenset()) -> None:
        """Read the index and the metadata from disk, except those of the pages in ``keep``."""
        present = {entry.name for entry in os.scandir(self.task_dir)}
        known = read_metadata(self.task_dir)
        for key, kind in _read_index(self.task_dir / INDEX_FILE):
            if key not in keep and any(f"{stem}.{_REQUIRED[kind]}" in present for stem in file_stems(key)):
                self._enter(key, kind, known.get(key))

    def _enter(self, key: str, kind: PageType, metadata: PageMetadata | None) -> None:
        is_new = key not in self._types
        self._types[key] = kind
        self._metadata.pop(key, None)
        if metadata is not None:
            self._metadata[key] = metadata
        spellings = {lenient_key(key, is_layout_key=True)}
        if metadata is not None:
            spellings.add(lenient_key(metadata.url))
            public = layout_key(metadata.url)
            if is_new and public != key:
                self._sharing.setdefault(public, []).append(key)
        for spelling in spellings:
            keys = self._spellings.setdefault(spelling, [])
            if key not in keys:
                keys.append(key)

    def _put(self, url: str, kind: PageType, files: Mapping[str, bytes], metadata: PageMetadata) -> None:
        key = self._key_to_write(url)
        stem = file_stems(key)[0]
        for suffix, data in files.items():
            self._write(f"{stem}.{suffix}", data)
        if kind == "web" and "jpg" not in files:
            (self.task_dir / f"{stem}.jpg").unlink(missing_ok=True)
        self._enter(key, kind, metadata)
        self._unsaved.add(key)

    def _key_to_write(self, url: str) -> str:
        """Return the public key, or a separate key if another page has taken it."""
        public, page = layout_key(url), canonical_key(url)
        for key in (public, *self._sharing.get(public, [])):
            if key not in self._types or self._page_of(key) == page:
                return key
        own = page
        while own in self._types:
            own += "#"
        return own

    def _page_of(self, key: str) -> str:
        """Return the canonical key of the page stored under a key, by its original URL if that is known."""
        return canonical_key(self._metadata[key].url if key in self._metadata else key)

    def _matches(self, url: str) -> Iterator[str]:
        """Return the keys under which the page may be stored, the most certain first."""
        public = layout_key(url)
        if public in self._sharing:
            page = canonical_key(url)
            yield from (key for key in self._sharing[public] if self._page_of(key) == page)
        for key in (public, url):
            if key in self._types:
                yield key
        yield from self._spellings.get(lenient_key(url), ())

    def _find(self, url: str, kind: PageType) -> str | None:
        return next((key for key in self._matches(url) if self._types[key] == kind), None)

    def _key_of(self, url: str, kind: PageType) -> str:
        key = self._find(url, kind)
        if key is None:
            raise KeyError(url)
        return key

    def _read(self, key: str, suffix: str) -> bytes | None:
        for stem in file_stems(key):
            try:
                return (self.task_dir / f"{stem}.{suffix}").read_bytes()
            except FileNotFoundError:
                continue
        return None

    def _write(self, name: str, data: bytes) -> None:
        write_atomic(self.task_dir / name, data)

    def _new_metadata(
        self,
        url: str,
        files: Mapping[str, bytes],
        status: int | None,
        final_url: str | None,
        headers: Mapping[str, str] | None,
        captured_at: datetime | None,
    ) -> PageMetadata:
        return PageMetadata(
            url=url,
            captured_at=(captured_at or datetime.now(UTC)).isoformat(),
            status=status,
            final_url=final_url,
            headers=dict(headers or {}),
            sha256={suffix: hashlib.sha256(data).hexdigest() for suffix, data in files.items()},
        )


def _read_index(path: Path) -> list[tuple[str, PageType]]:
    """Return the entries of an index file; none if it is missing or invalid."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    if not isinstance(entries, dict):
        return []
    return [(key, kind) for key, kind in entries.items() if isinstance(kind, str) and kind in _REQUIRED]

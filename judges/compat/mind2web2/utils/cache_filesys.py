"""Page cache of one task in the public folder layout.

``index.json`` maps keys to "web" or "pdf"; ``<md5>.txt``, ``.jpg`` and ``.pdf`` contain the pages. ``redirects.json``
maps the keys of final URLs to the keys of their pages, ``failures.json`` contains the URLs that could not be captured.
The public toolkit can read folders written here, and vice versa. Pages that share a key of the public layout
(``?q=a%26b`` and ``?q=a&b``) get separate keys.

Several processes can change one folder. A change is made under a lock on the folder, on top of the changes of the
others, and is on disk when the method returns.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from PIL import Image

from cache.atomic_files import atomic_path, locked_folder, sync_file
from cache.capture import Capture, Observation
from cache.errors import CacheError
from cache.page_text.screenshot_parts import UNREADABLE, as_jpeg, on_white
from cache.urls import canonical_key
from judges.result import write_json
from mind2web2.page_keys import changes_when_decoded, file_stems, lenient_key, storage_key
from mind2web2.page_metadata import METADATA_FILE, PageMetadata, append_metadata, read_metadata
from mind2web2.utils.url_tools import page_form

__all__ = ["CacheFileSys", "CacheIndexError", "page_form", "storage_key"]

PageType: TypeAlias = Literal["web", "pdf"]
INDEX_FILE = "index.json"
REDIRECTS_FILE = "redirects.json"
FAILURES_FILE = "failures.json"
REQUIRED_FILES: dict[str, str] = {"web": "txt", "pdf": "pdf"}


class CacheIndexError(CacheError, ValueError):
    """A JSON file of a page cache cannot be read. Nothing is changed, so that its pages are not lost."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path} cannot be read ({problem}): restore the file, or remove it to start without it")
        self.path = path


class StoredUrl(str):
    """Key of a stored page, as returned by the cache. It is looked up as it is, and not as a URL.

    Without this, the key ``…?q=C#`` of the URL ``…?q=C%23`` would be taken for a URL with a fragment.
    """

    __slots__ = ()


class CacheFileSys:
    """Pages of one task, on disk. Look-ups take a few dict accesses in any spelling of the URL."""

    def __init__(self, task_dir: str | Path) -> None:
        """Open the cache of a folder, which is created if necessary.

        Raises:
            CacheIndexError: a JSON file of the cache cannot be read.
        """
        self.task_dir = Path(task_dir)
        if not self.task_dir.is_dir():
            self.task_dir.mkdir(parents=True, exist_ok=True)
            sync_file(self.task_dir.parent)
        self._forget()
        self._load()

    def put_web(
        self,
        url: str,
        text: str,
        screenshot: bytes | str | None,
        final_url: str | None = None,
        *,
        capture: Capture | Observation | None = None,
    ) -> str:
        """Store a web page and return the key under which it is stored. A recorded failure of the URL is removed.

        The screenshot is bytes, base64 or a data URI, and stored as JPEG on a white background. ``final_url`` is the
        URL after redirects, which then finds the page, too. ``capture`` has the metadata of the page; its screenshot is
        a JPEG already and stored unchanged.

        Raises:
            CacheIndexError: a JSON file of the cache cannot be read.
        """
        files = {"txt": text.encode("utf-8", errors="replace")}
        if screenshot is not None:
            data = image_bytes(screenshot)
            files["jpg"] = _storable_jpeg(data) if capture is None else data
        return self._put(url, "web", files, _new_metadata(url, files, final_url, capture))

    def put_pdf(
        self,
        url: str,
        pdf_bytes: bytes,
        final_url: str | None = None,
        *,
        capture: Capture | Observation | None = None,
    ) -> str:
        """Store a PDF, like ``put_web``."""
        files = {"pdf": bytes(pdf_bytes)}
        return self._put(url, "pdf", files, _new_metadata(url, files, final_url, capture))

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
        key = self._find(url)
        return None if key is None else self._types[key]

    def has_web(self, url: str) -> bool:
        return self.has(url) == "web"

    def has_pdf(self, url: str) -> bool:
        return self.has(url) == "pdf"

    def lookup(self, url: str, ignore_case: bool = True, follow_redirects: bool = True) -> str | None:
        """Return the key of the page stored for a URL; None if there is none.

        The most certain match counts: the key of the URL, its form with letter case, other spellings, then the final
        URLs of pages (``follow_redirects``), and at last all of them without letter case (``ignore_case``). If decoding
        would change a key again, only its own spelling finds it.
        """
        return self._find(url, ignore_case=ignore_case, follow_redirects=follow_redirects)

    def metadata(self, url: str) -> PageMetadata | None:
        """Return the metadata of the page of this URL; None if it was stored without metadata."""
        key = self._find(url)
        return None if key is None else self._metadata.get(key)

    def redirects(self) -> dict[str, str]:
        """Return the key of the page by the key of its final URL."""
        return dict(self._redirects)

    def record_failure(self, url: str, reason: str, *, blocked: bool = False, gone: bool = False) -> str:
        """Record that a URL could not be captured, and return the key of the record. Counts the attempts.

        Args:
            blocked: The site refused the capture, for example with a bot check.
            gone: The page is known not to exist, for example because there is no such host.
        """
        with self._change():
            key = self.failure_url(url) or StoredUrl(storage_key(url))
            attempts = self._failures.get(key, {}).get("attempts")
            record: dict[str, Any] = {
                "reason": reason,
                "blocked": blocked,
                "attempts": attempts + 1 if isinstance(attempts, int) else 1,
                "time": datetime.now(UTC).isoformat(),
            }
            if gone:
                record["gone"] = True
            self._write_failures(self._failures | {key: record})
        return key

    def failure(self, url: str) -> dict[str, Any] | None:
        """Return the recorded failure of a URL: ``reason``, ``blocked``, ``attempts`` and ``time`` (UTC, ISO 8601)."""
        key = self.failure_url(url)
        return None if key is None else dict(self._failures[key])

    def failure_url(self, url: str) -> str | None:
        """Return the key of the recorded failure of a URL in any spelling with its letter case; None without one."""
        key = url if isinstance(url, StoredUrl) else storage_key(url)
        if key in self._failures:
            return StoredUrl(key)
        found = None if changes_when_decoded(key) else match_spelling(key, self._failed, None, ignore_case=False)
        return None if found is None else StoredUrl(found)

    def failures(self) -> dict[str, dict[str, Any]]:
        """Return all recorded failures by key."""
        return {StoredUrl(key): dict(record) for key, record in self._failures.items()}

    def clear_failure(self, url: str) -> bool:
        """Remove the recorded failure of a URL, and return whether there was one."""
        with self._change():
            return self._drop_failure(url)

    def remove(self, url: str) -> bool:
        """Remove the page of a URL with its files, and return whether there was one. Letter case matters."""
        with self._change() as index:
            key = self._find(url, ignore_case=False, follow_redirects=False)
            if key is None:
                return False
            index.pop(key, None)
            self._write_json(INDEX_FILE, index)
            self._write_redirects({final: page for final, page in self._redirects.items() if page != key})
            append_metadata(self.task_dir, key, None)
            self._unlink(key)
            self._forget()
            self._load()
        return True

    def get_all_urls(self) -> list[str]:
        """Return the keys of all stored pages."""
        return [StoredUrl(key) for key in list(self._types)]  # another thread may store a page meanwhile

    def summary(self) -> dict[str, int]:
        """Return the number of pages, in total and by type, and of recorded failures."""
        types = list(self._types.values())
        return {
            "total_urls": len(types),
            "web_pages": types.count("web"),
            "pdf_pages": types.count("pdf"),
            "failed_urls": len(self._failures),
        }

    def save(self) -> None:
        """Do nothing: every change is on disk already. Scripts of February call this method."""

    def clear(self) -> None:
        """Remove all pages, redirects and failures and their files."""
        with self._change():
            for key in self._types:
                self._unlink(key)
            for name in (INDEX_FILE, METADATA_FILE, REDIRECTS_FILE, FAILURES_FILE):
                (self.task_dir / name).unlink(missing_ok=True)
            self._forget()

    def _forget(self) -> None:
        """Forget what was read from disk."""
        self._types: dict[str, PageType] = {}
        self._metadata: dict[str, PageMetadata] = {}
        self._metadata_end = 0
        """Position in the metadata file up to which it was read."""
        self._sharing: dict[str, list[str]] = {}
        """Keys of pages whose public key was taken by another page, by that public key."""
        self._redirects: dict[str, str] = {}
        self._failures: dict[str, dict[str, Any]] = {}
        self._pages, self._finals, self._failed = Spellings(), Spellings(), Spellings()

    def _load(self) -> dict[str, Any]:
        """Read what other processes changed, and return the entries of the index.

        An index entry without files is ignored, but stays in the file.
        """
        index = _read_object(self.task_dir / INDEX_FILE)
        redirects, failures = (_read_object(self.task_dir / name) for name in (REDIRECTS_FILE, FAILURES_FILE))
        if self._types.keys() - index.keys():
            self._forget()
        changed, self._metadata_end = read_metadata(self.task_dir, self._metadata_end)
        for key, metadata in changed.items():
            self._metadata.pop(key, None)
            if metadata is not None:
                self._metadata[key] = metadata
        new = [(key, kind) for key, kind in index.items() if self._types.get(key) != kind]
        present = self._file_names() if new else set()
        for key, kind in new:
            suffix = REQUIRED_FILES.get(kind) if isinstance(kind, str) else None
            if suffix is not None and any(f"{stem}.{suffix}" in present for stem in _stems(key, index)):
                self._enter(key, kind)
        self._set_redirects({final: page for final, page in redirects.items() if isinstance(page, str)})
        self._set_failures({key: record for key, record in failures.items() if isinstance(record, dict)})
        return index

    def _file_names(self) -> set[str]:
        return {entry.name for entry in os.scandir(self.task_dir)}

    def _enter(self, key: str, kind: PageType) -> None:
        if key not in self._types:
            public = storage_key(self._metadata[key].url) if key in self._metadata else key
            if public != key:
                self._sharing.setdefault(public, []).append(key)
            self._pages.add(key)
        self._types[key] = kind

    def _set_redirects(self, redirects: dict[str, str]) -> None:
        if redirects != self._redirects:
            self._finals = Spellings()
            for final, page in redirects.items():
                self._finals.add(final, page)
        self._redirects = redirects

    def _set_failures(self, failures: dict[str, dict[str, Any]]) -> None:
        if failures.keys() != self._failures.keys():
            self._failed = Spellings()
            for key in failures:
                self._failed.add(key)
        self._failures = failures

    @contextmanager
    def _change(self) -> Iterator[dict[str, Any]]:
        """Lock the folder and read it. Yield the entries of the index; at the end, the changes are durable."""
        with locked_folder(self.task_dir):
            yield self._load()
            sync_file(self.task_dir)

    def _put(self, url: str, kind: PageType, files: Mapping[str, bytes], metadata: PageMetadata) -> str:
        with self._change() as index:
            key = self._key_to_write(url)
            stem = file_stems(key)[0]
            for suffix, data in files.items():
                self._write(f"{stem}.{suffix}", data)
            if kind == "web" and "jpg" not in files:
                (self.task_dir / f"{stem}.jpg").unlink(missing_ok=True)
            append_metadata(self.task_dir, key, metadata)
            sync_file(self.task_dir / METADATA_FILE)
            if index.get(key) != kind:
                self._write_json(INDEX_FILE, index | {key: kind})
            self._metadata[key] = metadata
            self._enter(key, kind)
            redirects = {final: page for final, page in self._redirects.items() if page != key}
            final_url = metadata.final_url
            if final_url and page_form(final_url) != page_form(url):
                redirects[storage_key(final_url)] = key
            self._write_redirects(redirects)
            self._drop_failure(url)
        return StoredUrl(key)

    def _write_redirects(self, redirects: dict[str, str]) -> None:
        if redirects != self._redirects:
            self._write_json(REDIRECTS_FILE, redirects)
            self._set_redirects(redirects)

    def _write_failures(self, failures: dict[str, dict[str, Any]]) -> None:
        self._write_json(FAILURES_FILE, failures)
        self._set_failures(failures)

    def _drop_failure(self, url: str) -> bool:
        failed = self.failure_url(url)
        if failed is not None:
            self._write_failures({key: record for key, record in self._failures.items() if key != failed})
        return failed is not None

    def _key_to_write(self, url: str) -> str:
        """Return the public key, or a separate key if another page has taken it."""
        public, page = storage_key(url), canonical_key(url)
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

    def _find(self, url: str, *, ignore_case: bool = True, follow_redirects: bool = True) -> StoredUrl | None:
        if isinstance(url, StoredUrl) and url in self._types:
            return url
        key = storage_key(url)
        found = self._own_page(url, key)
        if found is None and changes_when_decoded(key):
            found = self._redirects.get(key) if follow_redirects else None
        elif found is None:
            finals = self._finals if follow_redirects else None
            found = match_spelling(key, self._pages, finals, ignore_case=ignore_case)
        return StoredUrl(found) if found in self._types else None

    def _own_page(self, url: str, key: str) -> str | None:
        """Return the key of the page stored for exactly this URL, or under its public key."""
        if key in self._sharing:
            page = canonical_key(url)
            for shared in self._sharing[key]:
                if self._page_of(shared) == page:
                    return shared
        return key if key in self._types else None

    def _key_of(self, url: str, kind: PageType) -> str:
        key = self._find(url)
        if key is None or self._types[key] != kind:
            raise KeyError(url)
        return key

    def _read(self, key: str, suffix: str) -> bytes | None:
        for stem in _stems(key, self._types):
            try:
                return (self.task_dir / f"{stem}.{suffix}").read_bytes()
            except FileNotFoundError:
                continue
        return None

    def _unlink(self, key: str) -> None:
        for stem in _stems(key, self._types):
            for suffix in ("txt", "jpg", "pdf"):
                (self.task_dir / f"{stem}.{suffix}").unlink(missing_ok=True)

    def _write(self, name: str, data: bytes) -> None:
        with atomic_path(self.task_dir / name) as draft:
            draft.write_bytes(data)
            sync_file(draft)

    def _write_json(self, name: str, content: Mapping[str, Any]) -> None:
        try:
            data = json.dumps(content, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:  # a lone surrogate
            data = json.dumps(content).encode("ascii")
        self._write(name, data)


def overview_file(task_dir: Path) -> Path:
    """Return the path of the overview of the cited pages, beside the page cache of a task."""
    return task_dir.with_name(f"{task_dir.name}.json")


def write_overview(
    task_dir: Path,
    cited: Mapping[str, Sequence[str]],
    types: Mapping[str, PageType | None],
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write the overview: the names of the answers by cited URL, the types of the stored ones, and ``more`` keys."""
    overview = {
        "agent_name": task_dir.parent.name,
        "task_id": task_dir.name,
        "total_unique_urls": len(cited),
        "all_unique_urls": list(cited),
        "urls": {url: list(names) for url, names in cited.items()},
        "url_types": types,
        "cached_url_count": len(types),
    }
    write_json(overview_file(task_dir), overview | dict(more or {}))


class Spellings:
    """Pages by the spellings of their keys. Keys that decoding would change are left out."""

    def __init__(self) -> None:
        self.by_form: dict[str, str] = {}
        """Only of keys that share a variant, because computing the form is slow."""
        self.by_variant: dict[str, tuple[str, str]] = {}
        """First key and its page."""
        self.by_letters: dict[str, str] = {}

    def add(self, key: str, page: str | None = None) -> None:
        if changes_when_decoded(key):
            return
        entry = (key, page or key)
        variant = lenient_key(key)
        first = self.by_variant.setdefault(variant, entry)
        if first != entry:
            for each, its_page in (first, entry):
                self.by_form.setdefault(page_form(each), its_page)
        self.by_letters.setdefault(variant.lower(), entry[1])


def match_spelling(key: str, pages: Spellings, finals: Spellings | None, *, ignore_case: bool = True) -> str | None:
    """Return the page of a key by another spelling of it: among the pages, then among their final URLs."""
    variant = lenient_key(key)
    for table in (pages, finals):
        if table is not None and variant in table.by_variant:
            found = table.by_form.get(page_form(key)) if table.by_form else None
            return found or table.by_variant[variant][1]
    if not ignore_case:
        return None
    letters = variant.lower()
    return pages.by_letters.get(letters) or (None if finals is None else finals.by_letters.get(letters))


def _stems(key: str, known: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the file names of a key, without the name that belongs to another known key."""
    return file_stems(key)[:1] if storage_key(key) in known and storage_key(key) != key else file_stems(key)


def _read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; empty if the file does not exist.

    Raises:
        CacheIndexError: the file cannot be read, or contains something else.
    """
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CacheIndexError(path, error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise CacheIndexError(path, f"it is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise CacheIndexError(path, "it is not a JSON object")
    return content


def _new_metadata(
    url: str, files: Mapping[str, bytes], final_url: str | None, capture: Capture | Observation | None
) -> PageMetadata:
    sha256 = {suffix: hashlib.sha256(data).hexdigest() for suffix, data in files.items()}
    if capture is None:
        return PageMetadata(url=url, captured_at=datetime.now(UTC).isoformat(), final_url=final_url, sha256=sha256)
    return PageMetadata(
        url=url,
        captured_at=capture.captured_at.isoformat(),
        status=capture.http_status,
        final_url=final_url or capture.final_url,
        headers=dict(capture.headers),
        sha256=sha256,
    )


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


def _storable_jpeg(data: bytes) -> bytes:
    """Return an image as JPEG on a white background. Data that is not an image is returned unchanged. CPU-bound."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            return as_jpeg(on_white(image))
    except UNREADABLE:
        return data

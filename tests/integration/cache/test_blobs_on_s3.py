"""The blob store over the S3 protocol, against a local server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import obstore
import pytest
from obstore.store import S3Store

from cache.blobs import BlobStore
from cache.errors import BlobCorrupt, BlobMissing, BlobStoreFailed
from tests.standin.s3 import moto_server

KEYS: dict[str, Any] = {"access_key_id": "test", "secret_access_key": "test", "region": "us-east-1"}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.fixture
def bucket(endpoint: str) -> S3Store:
    """Return direct access to the bucket, without the blob store."""
    httpx.put(f"{endpoint}/evidence", trust_env=False).raise_for_status()
    return S3Store("evidence", client_options={"allow_http": True}, endpoint=endpoint, **KEYS)


@pytest.fixture
def store(endpoint: str, bucket: S3Store) -> BlobStore:
    return BlobStore.open("s3://evidence/pages/v1", s3={**KEYS, "endpoint": endpoint})


async def test_body_is_stored_under_the_prefix_and_read_back(store: BlobStore, bucket: S3Store) -> None:
    blob = await store.put(b"the evidence" * 10_000, "text/plain")
    assert await store.get(blob.sha256) == b"the evidence" * 10_000
    found = await obstore.head_async(bucket, f"pages/v1/sha256/{blob.sha256[:2]}/{blob.sha256}")
    assert found["size"] == blob.size


async def test_damaged_object_is_detected_on_read_and_quarantined(store: BlobStore, bucket: S3Store) -> None:
    blob = await store.put(b"the evidence", "text/plain")
    await obstore.put_async(bucket, f"pages/v1/sha256/{blob.sha256[:2]}/{blob.sha256}", b"other words")
    with pytest.raises(BlobCorrupt):
        await store.get(blob.sha256)
    with pytest.raises(BlobMissing):
        await store.get(blob.sha256)
    assert (await obstore.head_async(bucket, f"pages/v1/quarantine/{blob.sha256}"))["size"] == len(b"other words")


async def test_missing_bucket_raises_the_error_of_the_server(endpoint: str) -> None:
    store = BlobStore.open("s3://nowhere", s3={**KEYS, "endpoint": endpoint})
    with pytest.raises(BlobStoreFailed, match=r"returned NoSuchBucket: The specified bucket does not exist$"):
        await store.put(b"x", "text/plain")

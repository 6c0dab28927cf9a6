"""Faulty S3 store: a body is complete once ``put`` returns; all other cases raise."""

from __future__ import annotations

import pytest

from cache.blobs import BlobStore
from cache.errors import BlobCorrupt, BlobStoreFailed
from tests.standin.s3 import StandInS3

KEYS = {"access_key_id": "test", "secret_access_key": "test", "region": "us-east-1"}
BODY = b"the evidence" * 1000


def store(server: StandInS3) -> BlobStore:
    return BlobStore.open("s3://evidence/pages", s3={**KEYS, "endpoint": server.endpoint})


def first_put(wrong: str, times: int = 1):
    """Return a fault rule that fails the first ``times`` PUT requests."""
    return lambda request, nth: wrong if request.method == "PUT" and nth < times else None


@pytest.mark.parametrize("wrong", ["500", "half"])
async def test_failed_put_is_retried(wrong: str) -> None:
    async with StandInS3(first_put(wrong)) as server:
        blob = await store(server).put(BODY, "text/plain")
        assert server.methods["PUT"] == 2
        assert await store(server).get(blob.sha256) == BODY


async def test_put_sends_checksum_and_body_in_one_request() -> None:
    async with StandInS3() as server:
        await store(server).put(BODY * 1000, "text/plain")  # 12 MB, enough for a multipart upload, which is not used
        [put] = [request for request in server.requests if request.method == "PUT"]
        assert "x-amz-checksum-sha256" in put.headers
        assert server.methods == {"PUT": 1, "HEAD": 1}


async def test_put_fails_if_stored_content_differs() -> None:
    async with StandInS3(lambda request, nth: "half" if request.method == "PUT" else None) as server:
        with pytest.raises(BlobStoreFailed, match="wrote 12000 bytes, but the store has other content"):
            await store(server).put(BODY, "text/plain")
        assert server.methods["PUT"] == 2


async def test_wrong_etag_causes_a_comparison_of_bytes() -> None:
    async with StandInS3(lambda request, nth: "tag" if request.method == "HEAD" else None) as server:
        await store(server).put(BODY, "text/plain")
        assert server.methods == {"PUT": 1, "HEAD": 1, "GET": 1}


async def test_truncated_body_is_corrupt() -> None:
    async with StandInS3() as server:
        blobs = store(server)
        blob = await blobs.put(BODY, "text/plain")
        [place] = server.objects
        server.objects[place] = BODY[:-1]
        with pytest.raises(BlobCorrupt):
            await blobs.get(blob.sha256)

"""An S3 store that fails: what a ``put`` returned from is there and whole, and everything else is said."""

from __future__ import annotations

import pytest

from cache.blobs import BlobStore
from cache.errors import BlobCorrupt, BlobStoreFailed
from tests.standin.http import HttpRequest
from tests.standin.s3 import StandInS3

KEYS = {"access_key_id": "test", "secret_access_key": "test", "region": "us-east-1"}
BODY = b"the evidence" * 1000


def store(server: StandInS3) -> BlobStore:
    return BlobStore.open("s3://evidence/pages", s3={**KEYS, "endpoint": server.endpoint})


def first_put(wrong: str, times: int = 1):
    """The first ``times`` PUTs go wrong."""
    return lambda request, nth: wrong if request.method == "PUT" and nth < times else None


@pytest.mark.parametrize("wrong", ["500", "reset", "slow"])
async def test_a_put_that_failed_is_tried_again(wrong: str) -> None:
    async with StandInS3(first_put(wrong)) as server:
        blob = await store(server).put(BODY, "text/plain")
        assert server.methods["PUT"] == (1 if wrong == "slow" else 2)
        assert await store(server).get(blob.sha256) == BODY


async def test_the_checksum_travels_with_the_body_in_one_request() -> None:
    async with StandInS3() as server:
        await store(server).put(BODY * 1000, "text/plain")  # 12 MB: enough for parts, which are not used
        [put] = [request for request in server.requests if request.method == "PUT"]
        assert "x-amz-checksum-sha256" in put.headers
        assert server.methods == {"PUT": 1, "HEAD": 1}


async def test_what_the_store_holds_is_compared_before_a_put_counts() -> None:
    async with StandInS3(lambda request, nth: "half" if request.method == "PUT" else None) as server:
        with pytest.raises(BlobStoreFailed, match="wrote 12000 bytes, but the store has other content"):
            await store(server).put(BODY, "text/plain")
        assert server.methods["PUT"] == 2


async def test_a_body_that_was_stored_in_part_is_sent_again() -> None:
    async with StandInS3(first_put("half")) as server:
        blob = await store(server).put(BODY, "text/plain")
        assert await store(server).get(blob.sha256) == BODY


async def test_a_wrong_tag_makes_the_bytes_decide() -> None:
    async with StandInS3(lambda request, nth: "tag" if request.method == "HEAD" else None) as server:
        await store(server).put(BODY, "text/plain")
        assert server.methods == {"PUT": 1, "HEAD": 1, "GET": 1}


async def test_a_store_that_stays_broken_ends_in_an_error_and_not_in_endless_tries() -> None:
    async with StandInS3(lambda request, nth: "500") as server:
        with pytest.raises(BlobStoreFailed):
            await store(server).put(BODY, "text/plain")
        assert 1 < server.methods["PUT"] <= 6


async def test_a_body_cut_short_on_the_way_is_no_body() -> None:
    async with StandInS3() as server:
        blobs = store(server)
        blob = await blobs.put(BODY, "text/plain")
        [place] = server.objects
        server.objects[place] = BODY[:-1]
        with pytest.raises(BlobCorrupt):
            await blobs.get(blob.sha256)


async def test_reading_survives_a_cut_connection() -> None:
    def cut_once(request: HttpRequest, nth: int) -> str | None:
        return "reset" if request.method == "GET" and nth == 0 else None

    async with StandInS3(cut_once) as server:
        blob = await store(server).put(BODY, "text/plain")
        assert await store(server).get(blob.sha256) == BODY

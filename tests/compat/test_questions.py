"""Requests that reach the client: messages, keywords, pages and semaphores."""

from __future__ import annotations

import asyncio
import base64
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pydantic import BaseModel

from mind2web2 import CacheFileSys
from mind2web2.eval_runner import DualSemaphore
from mind2web2.eval_toolkit import TRUNCATION_MARKER, BinaryEvalResult, EvaluatorConfig, count_tokens
from tests.compat.scripted import ScriptedClient, initialized_evaluator, request_in, text_of, url_in
from tests.fakes.pages import jpeg

URL = "https://a.com/page"


class Title(BaseModel):
    title: str = ""


@pytest.fixture
def cache(tmp_path: Path) -> CacheFileSys:
    made = CacheFileSys(tmp_path)
    made.put_web(URL, "the text of the page", jpeg(60, 40))
    return made


def images(call: dict[str, Any]) -> list[bytes]:
    parts = [part for part in call["messages"][0]["content"] if part["type"] == "image_url"]
    assert all(part["image_url"]["detail"] == "high" for part in parts)
    assert all(part["image_url"]["url"].startswith("data:image/jpeg;base64,") for part in parts)
    return [base64.b64decode(part["image_url"]["url"].split(",", 1)[1]) for part in parts]


def size(image: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(image)).size


async def test_claim_about_the_answer_is_one_text_message():
    client = ScriptedClient()
    e = initialized_evaluator(client, answer="Paris, since 1889", task_description="Where is the tower?")
    await e.verify("It names Paris", None, additional_instruction="Ignore case")
    assert len(client.calls) == 2
    call = client.calls[0]
    assert call.keys() == {"model", "messages", "response_format"}
    assert call["model"] == "gpt-6-luna"
    assert call["response_format"] is BinaryEvalResult
    [message] = call["messages"]
    assert message["role"] == "user"
    assert isinstance(message["content"], str)
    for words in ("Paris, since 1889", "Where is the tower?", "It names Paris", "Ignore case"):
        assert words in message["content"]


async def test_claim_about_a_page_is_a_text_part_and_screenshots(cache: CacheFileSys):
    client = ScriptedClient()
    await initialized_evaluator(client, cache).verify("c", None, URL)
    call = client.calls[0]
    assert call.keys() == {"model", "messages", "response_format"}
    [message] = call["messages"]
    assert [part["type"] for part in message["content"]] == ["text", "image_url"]
    assert "the text of the page" in text_of(call["messages"])
    assert url_in(text_of(call["messages"])) == URL
    assert [size(image) for image in images(call)] == [(60, 40)]


async def test_extraction_requests_the_class_of_the_script(cache: CacheFileSys):
    client = ScriptedClient(values={"Title": Title(title="T")})
    e = initialized_evaluator(client, cache)
    assert (await e.extract("What is the title?", Title)).title == "T"
    assert (await e.extract("And here?", Title, source=URL)).title == "T"
    from_answer, from_page = client.calls
    assert from_answer["response_format"] is from_page["response_format"] is Title
    assert isinstance(from_answer["messages"][0]["content"], str)
    assert request_in(text_of(from_answer["messages"])) == "What is the title?"
    assert "the answer" in text_of(from_answer["messages"])
    assert "the text of the page" in text_of(from_page["messages"])
    assert len(images(from_page)) == 1


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ((2200, 100), [(1100, 50)]),
        ((100, 12_000), [(100, 2000)] * 5),
        ((2200, 4100), [(1100, 2000), (1100, 150)]),
    ],
)
async def test_screenshot_is_scaled_down_and_split_into_at_most_five_parts(
    stored: tuple[int, int], shown: list[tuple[int, int]], tmp_path: Path
):
    cache = CacheFileSys(tmp_path)
    cache.put_web(URL, "w", jpeg(*stored))
    client = ScriptedClient()
    e = initialized_evaluator(client, cache)
    await e.verify("c", None, URL)
    assert [size(image) for image in images(client.calls[0])] == shown
    page_images, _ = await e.extractor.get_page_info(URL)
    assert page_images is not None
    assert (len(page_images), page_images.split) == (len(shown), len(shown) > 1)


async def test_limits_come_from_the_config(cache: CacheFileSys):
    config = EvaluatorConfig()
    config.image_max_width = 30
    config.default_num_trials = 5
    config.max_text_tokens = 2
    cache.put_web("https://words.com", "one two three four", None)
    client = ScriptedClient()
    e = initialized_evaluator(client, cache, config=config)
    await e.verify("c", None, URL)
    assert size(images(client.calls[0])[0]) == (30, 20)
    assert len(client.calls) == 3
    _, text = await e.extractor.get_page_info("https://words.com")
    assert text is not None
    assert text == "one two" + TRUNCATION_MARKER


async def test_text_is_cut_after_a_hundred_thousand_tokens_with_its_line_breaks(tmp_path: Path):
    cache = CacheFileSys(tmp_path)
    whole = "word \n\n" * 60_000
    cache.put_web(URL, whole, None)
    client = ScriptedClient()
    e = initialized_evaluator(client, cache)
    _, text = await e.verifier.get_page_info(URL)
    assert text is not None
    body = text.removesuffix(TRUNCATION_MARKER)
    assert whole.startswith(body)
    assert body != whole
    assert count_tokens(body) == 100_000
    await e.verify("c", None, URL)
    assert text in text_of(client.calls[0]["messages"])


class Counting:
    """Semaphore that counts how often it is acquired, and how often concurrently."""

    def __init__(self) -> None:
        self.held = self.most = self.times = 0

    async def __aenter__(self) -> None:
        self.held += 1
        self.times += 1
        self.most = max(self.most, self.held)

    async def __aexit__(self, *_: object) -> None:
        self.held -= 1


async def test_each_model_call_acquires_the_llm_semaphore():
    llm, webpage = Counting(), Counting()
    client = ScriptedClient({"c": [True, False, True]})
    e = initialized_evaluator(client, global_semaphore=DualSemaphore(webpage, llm))
    await e.verify("c", None)
    await e.extract("p", Title)
    assert (llm.times, llm.most, llm.held) == (4, 2, 0)
    assert webpage.times == 0


async def test_plain_semaphore_of_one_does_not_deadlock(cache: CacheFileSys):
    client = ScriptedClient({("c", URL): [True, False, True]})
    e = initialized_evaluator(client, cache, global_semaphore=asyncio.Semaphore(1))
    async with asyncio.timeout(240):
        assert await e.verify("c", None, [URL, URL, "https://b.invalid/x"])

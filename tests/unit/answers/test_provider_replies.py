"""Replies of providers. ``replies`` was made with the SDKs that the files name; ``cited`` was written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from answers.citations import citations
from answers.errors import InvalidSubmission, ProblemCode
from answers.provider_replies import MAX_MARKDOWN_CHARS, ReplyAnswer, answer_from_reply

REPLIES = Path(__file__).parent / "replies"
URL = "https://example.org/page"
OTHER = "https://example.org/other"


def convert(reply: Any) -> ReplyAnswer:
    return answer_from_reply(reply)


def problem_of(reply: Any) -> tuple[str, str, ProblemCode]:
    with pytest.raises(InvalidSubmission) as caught:
        convert(reply)
    (problem,) = caught.value.problems
    return problem.path, problem.message, problem.code


def responses(text: str, *annotations: dict[str, Any]) -> dict[str, Any]:
    content = {"type": "output_text", "text": text, "annotations": list(annotations)}
    return {"output": [{"type": "message", "role": "assistant", "content": [content]}]}


def url_citation(start: Any, end: Any, url: str = URL, title: str = "") -> dict[str, Any]:
    return {"type": "url_citation", "start_index": start, "end_index": end, "url": url, "title": title}


def gemini(text: str, *supports: dict[str, Any], uris: tuple[str, ...] = (URL,)) -> dict[str, Any]:
    chunks = [{"web": {"uri": uri, "title": "example.org"}} for uri in uris]
    metadata = {"groundingChunks": chunks, "groundingSupports": list(supports)}
    return {"candidates": [{"content": {"parts": [{"text": text}]}, "groundingMetadata": metadata}]}


def support(start: int, end: int, *, text: str | None = None, chunks: tuple[int, ...] = (0,)) -> dict[str, Any]:
    return {"segment": {"startIndex": start, "endIndex": end, "text": text}, "groundingChunkIndices": list(chunks)}


def perplexity(text: str, *urls: str) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": text}}], "citations": list(urls)}


def anthropic(*blocks: tuple[str, dict[str, Any] | None]) -> dict[str, Any]:
    content = [{"type": "text", "text": text, "citations": [cited] if cited else None} for text, cited in blocks]
    return {"type": "message", "role": "assistant", "content": content}


def web_result(url: str, title: str | None = None) -> dict[str, Any]:
    return {"type": "web_search_result_location", "url": url, "title": title, "cited_text": "quote"}


def links_of(markdown: str) -> list[str]:
    """Return the targets of the links that a Markdown parser finds."""
    parsed = MarkdownIt("commonmark").enable("table").parse(markdown)
    inline = [child for token in parsed for child in token.children or ()]
    return [str(child.attrGet("href")) for child in inline if child.type == "link_open"]


@pytest.mark.parametrize("file", sorted(REPLIES.glob("*.json")), ids=lambda file: file.stem)
def test_citations_of_a_reply_made_with_an_sdk_are_at_the_cited_text(file: Path) -> None:
    case = json.loads(file.read_text(encoding="utf-8"))
    answer = convert(case["reply"])
    assert [[answer.text[one.start : one.end], one.url] for one in answer.citations] == case["cited"]
    written = [one.url for one in citations(answer.text)]
    assert set(written) == {one.url for one in answer.citations if one.url}
    assert len(links_of(answer.text)) == len(written)


def test_reasoning_tools_commentary_and_other_candidates_are_not_part_of_the_answer() -> None:
    reply = responses("The answer.")
    reply["output"] = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Think."}]},
        {"type": "message", "phase": "commentary", "content": [{"type": "output_text", "text": "I search."}]},
        {"type": "web_search_call", "action": {"query": "q"}},
        *reply["output"],
        {"type": "message", "phase": "final_answer", "content": [{"type": "output_text", "text": "More."}]},
    ]
    assert convert(reply).text == "The answer.\n\nMore."
    several = gemini("First.")
    several["candidates"][0]["content"]["parts"].insert(0, {"text": "Think.", "thought": True})
    several["candidates"].append({"content": {"parts": [{"text": "Second."}]}})
    assert convert(several).text == "First."


def test_source_that_is_no_web_page_has_no_url_and_no_link() -> None:
    document = {"type": "char_location", "cited_text": "q", "document_title": "notes.txt", "document_index": 0}
    answer = convert(anthropic(("It is old.", document)))
    assert answer.text == "It is old."
    assert [(one.url, one.title) for one in answer.citations] == [(None, "notes.txt")]


def test_url_that_the_cited_text_contains_is_not_repeated() -> None:
    text = f"It is old ([example.org]({URL}))."
    answer = convert(responses(text, url_citation(10, len(text) - 1)))
    assert answer.text == text


def test_link_is_written_before_trailing_space_and_table_border() -> None:
    text = "| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd. \n"
    answer = convert(responses(text, url_citation(0, text.index("End")), url_citation(0, len(text))))
    link = f"([example.org]({URL}))"
    assert answer.text == f"| a | b |\n|---|---|\n| 1 | 2 {link} |\n\nEnd {link}. \n"


def test_link_never_splits_code_or_another_link() -> None:
    text = f"See\n```\ncode\n```\nNext `x y` and [a b]({OTHER} 'title') or <{OTHER}> or {OTHER}/x end"
    for end in range(1, len(text) + 1):
        written = links_of(convert(responses(text, url_citation(0, end))).text)
        assert written.count(URL) == 1, end
        assert written.count(OTHER) == 2, end


def test_citation_without_offsets_is_placed_at_the_end_of_its_text() -> None:
    for start, end in ((None, None), (0, 0), (None, 0)):
        assert convert(responses("It is old.", url_citation(start, end))).text == f"It is old ([example.org]({URL}))."


def test_offsets_in_utf16_units_are_recognised_by_the_url_in_the_span() -> None:
    text = f"😀😀 It is old ([x]({URL})). It is [y]({OTHER})."
    mark, other = f"([x]({URL}))", f"[y]({OTHER})"
    spans = [(text.index(one), text.index(one) + len(one)) for one in (mark, other)]
    for shift in (0, 2):
        annotations = [url_citation(s + shift, e + shift, url) for (s, e), url in zip(spans, (URL, OTHER), strict=True)]
        answer = convert(responses(text, *annotations))
        assert [answer.text[one.start : one.end] for one in answer.citations] == [mark, other]


def test_marks_of_perplexity_become_links_and_other_brackets_do_not_change() -> None:
    text = "A [1, 2] b![1] `c[1]` [1](https://x.example/) [0] [3] [text]\n```\n[1]\n```\n"
    answer = convert(perplexity(text, URL, OTHER))
    assert answer.text == text.replace("[1, 2]", f"[[1]]({URL}), [[2]]({OTHER})")


def test_title_of_a_source_cannot_form_markdown() -> None:
    answer = convert(anthropic(("It is old.", web_result(URL, "a](https://evil.example) **b** <c>\n\n# `d` | \\"))))
    assert links_of(answer.text) == [URL]
    assert "\n" not in answer.text


UNKNOWN = [{}, {"output": "text"}, {"error": {"message": "overloaded"}}]


@pytest.mark.parametrize("reply", UNKNOWN)
def test_unknown_reply_is_refused_with_the_known_formats(reply: dict[str, Any]) -> None:
    path, message, code = problem_of(reply)
    assert (path, code) == ("", ProblemCode.BAD_REPLY)
    assert all(name in message for name in ("OpenAI", "Anthropic", "Gemini", "Perplexity", "'text'"))


EMPTY = [
    {"choices": []},
    {"candidates": [{"finishReason": "SAFETY"}]},
    responses(" \n"),
    {"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]},
]


@pytest.mark.parametrize("reply", EMPTY)
def test_reply_without_text_is_refused(reply: dict[str, Any]) -> None:
    assert problem_of(reply)[2] is ProblemCode.EMPTY


ANNOTATION = "output.0.content.0.annotations.0"
SUPPORT = "candidates.0.groundingMetadata.groundingSupports.0"
WRONG = [
    (responses("abc", url_citation(0, 4)), f"{ANNOTATION}.end_index", "is 4, which is beyond the text"),
    (responses("abc", url_citation(2, 1)), f"{ANNOTATION}.end_index", "is 1, before the start 2"),
    (responses("abc", {**url_citation(0, 1), "url": 3}), f"{ANNOTATION}.url", "is not a string"),
    (gemini("東京", support(0, 2)), f"{SUPPORT}.segment.endIndex", "within a character"),
    (gemini("abc", support(0, 3, chunks=(1,))), f"{SUPPORT}.groundingChunkIndices.0", "is 1, but there are 1"),
    (
        gemini("abc", {"segment": {"partIndex": 1, "endIndex": 2}, "groundingChunkIndices": [0]}),
        f"{SUPPORT}.segment.partIndex",
        "is 1, but the answer has 1 parts",
    ),
]


@pytest.mark.parametrize(("reply", "path", "message"), WRONG)
def test_contradiction_is_refused_and_names_the_field(reply: dict[str, Any], path: str, message: str) -> None:
    found = problem_of(reply)
    assert found[0] == path
    assert message in found[1]
    assert found[2] is ProblemCode.BAD_REPLY


LONG = URL + "a" * 4000


def test_links_that_make_a_reply_too_large_are_refused() -> None:
    path, message, code = problem_of(perplexity("x[1] " * 2000, LONG))
    assert (path, code) == ("choices.0.message.content", ProblemCode.TOO_LARGE)
    assert f"more than {MAX_MARKDOWN_CHARS} characters" in message


def pieces(*alphabet: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(alphabet), max_size=20).map("".join)


@given(text=pieces(*"ab \n`[]()|-:<>!*_~東", "😀", "https://q.org"), data=st.data())
def test_nothing_of_the_text_is_lost_or_changed(text: str, data: st.DataObject) -> None:
    if not text.strip():
        return
    ends = data.draw(st.lists(st.integers(1, len(text)), max_size=5))
    answer = convert(responses(text, *(url_citation(0, end) for end in ends)))
    link = f"([example.org]({URL}))"
    assert answer.text.replace(f"\n\n{link}\n", "").replace(f" {link}", "") == text
    assert all(0 <= one.start <= one.end <= len(answer.text) for one in answer.citations)


@given(path=st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=30))
def test_link_has_the_url_of_its_citation_whatever_the_url_contains(path: str) -> None:
    answer = convert(anthropic(("It is old.", web_result(f"https://example.org/{path}"))))
    (one,) = answer.citations
    assert [each.url for each in citations(answer.text)] == [one.url]
    assert len(links_of(answer.text)) == 1

"""Replies of providers. ``replies`` was made with the SDKs that the files name; ``cited`` was written by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from answers.citations import citations
from answers.errors import InvalidSubmission, ProblemCode
from answers.provider_replies import REPLY_SHAPES, answer_from_reply
from answers.reply_links import MAX_MARKDOWN_CHARS, ReplyAnswer

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


def cohere(text: str, *citations: dict[str, Any]) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": [{"type": "text", "text": text}], "citations": list(citations)}}


def cohere_citation(start: Any, end: Any, text: str | None, **source: Any) -> dict[str, Any]:
    document = {"type": "document", "id": "doc:0", "document": source or {"url": URL, "title": "example.org"}}
    return {"start": start, "end": end, "text": text, "sources": [document]}


def agent_message(value: str, *annotations: dict[str, Any], **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": {"value": value, "annotations": list(annotations)}}]
    return {"role": "assistant", "content": content, **fields}


def agent_citation(start: Any, end: Any, text: str | None, url: str = URL) -> dict[str, Any]:
    cited = {"url": url, "title": "example.org"}
    return {"type": "url_citation", "text": text, "start_index": start, "end_index": end, "url_citation": cited}


def converse(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"output": {"message": {"role": "assistant", "content": list(blocks)}}}


def grounded(*texts: str, url: str = URL) -> dict[str, Any]:
    cited = {"location": {"web": {"url": url, "domain": "example.org"}}}
    return {"citationsContent": {"content": [{"text": text} for text in texts], "citations": [cited]}}


def mistral(*chunks: dict[str, Any] | str) -> dict[str, Any]:
    content = [{"type": "text", "text": each} if isinstance(each, str) else each for each in chunks]
    return {"outputs": [{"type": "message.output", "role": "assistant", "content": content}]}


def tool_reference(url: str | None = URL) -> dict[str, Any]:
    return {"type": "tool_reference", "tool": "web_search", "title": "example.org", "url": url}


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


TEXT = "😀😀 東京は古い。 It is old【3:0†source】. 👨‍👩 end"
UNITS = {"characters": ("utf-32-le", 4), "UTF-16": ("utf-16-le", 2), "bytes": ("utf-8", 1)}
MARK = "【3:0†source】"


@pytest.mark.parametrize("cited", ["東京は古い", "It is old", "👨‍👩", MARK])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("provider", ["cohere", "gemini", "agent"])
def test_unit_of_the_offsets_is_the_one_in_which_the_cited_text_fits(provider: str, unit: str, cited: str) -> None:
    encoding, size = UNITS[unit]
    at = TEXT.index(cited)
    start, end = (len(TEXT[:each].encode(encoding)) // size for each in (at, at + len(cited)))
    reply = {
        "cohere": lambda: cohere(TEXT, cohere_citation(start, end, cited)),
        "gemini": lambda: gemini(TEXT, support(start, end, text=cited)),
        "agent": lambda: agent_message(TEXT, agent_citation(start, end, cited)),
    }[provider]()
    link = f" ([example.org]({URL}))"
    assert convert(reply).text == TEXT.replace(cited, link if cited == MARK else cited + link)


def test_without_a_text_to_compare_the_published_unit_counts() -> None:
    text = "東京 is old. It is big."
    for reply in (cohere(text, cohere_citation(0, 9, None)), responses(text, url_citation(0, 9))):
        assert convert(reply).text.startswith(f"{text[:9]} ([example.org]({URL}))")
    assert convert(gemini(text, support(0, 6))).text.startswith(f"東京 ([example.org]({URL}))")


@pytest.mark.parametrize(
    ("reply", "markdown"),
    [
        (converse({"text": "A."}, grounded()), "A LINK."),
        (converse({"text": "A."}, grounded("\n"), {"text": "B."}), "A LINK.\nB."),
        (converse({"text": "A. "}, grounded("B ", "C."), grounded(url=OTHER)), "A. B C (FIRST, SECOND)."),
        (converse(grounded(), {"text": "A."}), " LINKA."),
        (converse({"text": "A."}, {"toolUse": {}}, {"text": "B."}, grounded()), "A.\n\nB LINK."),
        (mistral("A.", tool_reference(), " B."), "A LINK. B."),
        (mistral("A.", tool_reference(), tool_reference(OTHER)), "A (FIRST, SECOND)."),
        (mistral("A.", tool_reference(), tool_reference()), "A LINK."),
        (mistral("A.", tool_reference(None), {"type": "thinking", "thinking": []}, "B."), "A.\n\nB."),
        (mistral("古い。", tool_reference(), "B."), "古い LINK。B."),
        ({"outputs": [{"type": "message.output", "content": "A."}]}, "A."),
        (cohere("A. B.", cohere_citation(0, 2, "A.")), "A LINK. B."),
        (cohere("A.", cohere_citation(0, 1, "A", id=URL)), "A LINK."),
        (cohere("A.", cohere_citation(0, 1, "A", snippet="s")), "A."),
        (cohere("A.", cohere_citation(None, None, "A")), "A LINK."),
        (cohere("A.", {**cohere_citation(0, 1, None), "type": "PLAN"}), "A."),
        ({"message": {"content": "A."}}, "A."),
        (agent_message(f"A{MARK}.", agent_citation(1, 13, MARK)), "A LINK."),
        (agent_message(f"A {MARK}.", agent_citation(2, 14, None)), "A LINK."),
        (
            agent_message(f"A{MARK}{MARK}.", agent_citation(1, 13, MARK), agent_citation(13, 25, MARK, OTHER)),
            "A (FIRST) (SECOND).",
        ),
        (agent_message(f"A{MARK}.", agent_citation(1, 13, MARK, "file:///x")), f"A{MARK}."),
        (agent_message("A."), "A."),
        ({"data": [agent_message("A."), {"role": "user", "content": []}, agent_message("B.")]}, "A."),
        ({"data": [agent_message("A.", created_at=1), agent_message("B.", created_at=2)]}, "B."),
    ],
)  # fmt: skip
def test_answers_of_further_providers(reply: dict[str, Any], markdown: str) -> None:
    first, second = f"[example.org]({URL})", f"[example.org]({OTHER})"
    expected = markdown.replace("LINK", f"({first})").replace("FIRST", first).replace("SECOND", second)
    assert convert(reply).text == expected


def test_marks_of_perplexity_become_links_and_other_brackets_do_not_change() -> None:
    text = "A [1, 2] b![1] `c[1]` [1](https://x.example/) [0] [3] [text]\n```\n[1]\n```\n"
    answer = convert(perplexity(text, URL, OTHER))
    assert answer.text == text.replace("[1, 2]", f"[[1]]({URL}), [[2]]({OTHER})")


def test_title_of_a_source_cannot_form_markdown() -> None:
    answer = convert(anthropic(("It is old.", web_result(URL, "a](https://evil.example) **b** <c>\n\n# `d` | \\"))))
    assert links_of(answer.text) == [URL]
    assert "\n" not in answer.text


UNKNOWN = [
    ({}, "no fields"),
    ({"output": "text"}, "fields 'output'"),
    ({"error": {"message": "overloaded"}, "message": "x"}, "fields 'error', 'message'"),
    ({"candidates": {}, "a\x1b[31m\n": 1}, r"fields 'candidates', 'a\x1b[31m\n'"),
    (dict.fromkeys(map(str, range(99))), f"fields {', '.join(repr(str(n)) for n in range(12))} and 87 more"),
    ({"x" * 9_999: 1}, f"fields '{'x' * 40}'"),
    ([{"type": "message"}], "a JSON list instead of an object"),
    ("text", "a JSON value instead of an object"),
]


@pytest.mark.parametrize(("reply", "seen"), UNKNOWN)
def test_unknown_reply_is_refused_with_what_was_seen_and_what_is_known(reply: Any, seen: str) -> None:
    path, message, code = problem_of(reply)
    assert (path, code) == ("", ProblemCode.BAD_REPLY)
    assert f"Found: {seen}. Supported: " in message
    assert all(f"{shape.provider} ({shape.json_type} {shape.field!r})" in message for shape in REPLY_SHAPES)
    assert "'text'" in message and len(message) < 1_500


EMPTY = [
    {"choices": []},
    {"candidates": [{"finishReason": "SAFETY"}]},
    responses(" \n"),
    {"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]},
    {"message": {"role": "assistant", "tool_plan": "I search.", "tool_calls": []}},
    {"data": [{"role": "user", "content": [{"type": "text", "text": {"value": "Why?", "annotations": []}}]}]},
    converse({"reasoningContent": {}}, grounded()),
    mistral(tool_reference()),
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
    (gemini("abc", support(0, 3, text="abd")), f"{SUPPORT}.segment.text", "is not the text at the offsets"),
    (cohere("東京 ab", cohere_citation(0, 2, "ab")), "message.citations.0.text", "is not the text at the offsets"),
    (cohere("abc", cohere_citation(0, 4, "abc")), "message.citations.0.end", "is 4, which is beyond the text"),
    (cohere("abc", cohere_citation(-1, 2, "a")), "message.citations.0.start", "is -1"),
    (cohere("abc", cohere_citation("0", 2, "a")), "message.citations.0.start", "is not an integer"),
    (cohere("abc", {**cohere_citation(0, 1, "a"), "content_index": 1}), "message.citations.0.content_index", "is 1"),
    (cohere("abc", {**cohere_citation(0, 1, "a"), "sources": {}}), "message.citations.0.sources", "is not a list"),
    (converse({"citationsContent": []}), "output.message.content.0.citationsContent", "is not a JSON object"),
    ({"output": {"message": None}}, "output.message", "is not a JSON object"),
    (mistral({"type": "text", "text": 3}), "outputs.0.content.0.text", "is not a string"),
    (mistral("a", {**tool_reference(), "url": 3}), "outputs.0.content.1.url", "is not a string"),
    (agent_message("abc", agent_citation(0, 4, None)), "content.0.text.annotations.0.end_index", "is 4"),
    (agent_message("abc", agent_citation(0, 1, "b")), "content.0.text.annotations.0.text", "is not the text"),
    ({"content": ["text"]}, "content.0", "is not a JSON object"),
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
    assert (path, code) == ("", ProblemCode.TOO_LARGE)
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


@given(text=pieces(*"ab. ", MARK, "東", "😀"), data=st.data())
def test_spans_of_replaced_marks_stay_within_the_answer(text: str, data: st.DataObject) -> None:
    if not text.strip():
        return
    ends = [sorted(data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text))))) for _ in range(4)]
    spans = [*ends, *([*match.span()] for match in re.finditer(MARK, text))]
    urls = [f"{URL}/{number}" for number in range(len(spans))]
    cited = [agent_citation(start, end, None, url) for (start, end), url in zip(spans, urls, strict=True)]
    answer = convert(agent_message(text, *cited))
    assert all(0 <= one.start <= one.end <= len(answer.text) for one in answer.citations)
    assert {one.url for one in citations(answer.text)} == set(urls)
    assert MARK not in answer.text


@given(path=st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=30))
def test_link_has_the_url_of_its_citation_whatever_the_url_contains(path: str) -> None:
    answer = convert(anthropic(("It is old.", web_result(f"https://example.org/{path}"))))
    (one,) = answer.citations
    assert [each.url for each in citations(answer.text)] == [one.url]
    assert len(links_of(answer.text)) == 1

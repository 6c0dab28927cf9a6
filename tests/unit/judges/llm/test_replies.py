from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, model_validator

from judges.errors import LLMOutputUnusable, UnusableKind
from judges.llm.json_schema import ReplySchema
from judges.llm.provider_adapter import FinishReason, RawReply
from judges.llm.replies import MAX_REPLY_CHARS, read_reply
from judges.prompting.rendering import BinaryEvalResult

GOOD = '{"reasoning": "so", "result": true, "quotes": ["a"]}'


BAD = GOOD.replace("true", "false")


def raw(text: str, finish: FinishReason = FinishReason.STOP) -> RawReply:
    return RawReply(text=text, finish=finish, model="m")


def kind_of(reply: RawReply, schema: type[BaseModel] | None = BinaryEvalResult) -> UnusableKind:
    with pytest.raises(LLMOutputUnusable) as caught:
        read_reply(reply, schema, purpose="verify")
    return caught.value.kind


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{GOOD}\n```",
        GOOD[:-1] + ', "confidence": 0.9, "result2": false}',
        f"Here you are: {GOOD} Anything else about {{this}}?",
        GOOD + GOOD,
        f"\ufeff{GOOD}",
        GOOD.replace("true", '"True"'),
        repr({"reasoning": "it's so", "result": True, "quotes": None or []}),
        json.dumps(GOOD),
        f'{{"BinaryEvalResult": {GOOD}}}',
        json.dumps({"name": "BinaryEvalResult", "arguments": GOOD}),
        f"<think>Perhaps {BAD}</think>{GOOD}",
        f'I write {{"result": true/false}}. {BAD}</think>\n{GOOD}',
        f"[THINK]Perhaps {BAD}[/THINK]{GOOD}",
        f"analysisPerhaps {BAD} No.assistantfinal{GOOD}",
    ],
)
def test_unambiguous_reply_is_parsed(text: str):
    found = read_reply(raw(text), BinaryEvalResult, purpose="verify")
    assert isinstance(found, BinaryEvalResult)
    assert found.result is True


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (raw(GOOD, FinishReason.LENGTH), UnusableKind.TRUNCATED),
        (raw("", FinishReason.REFUSAL), UnusableKind.REFUSED),
        (raw(GOOD, FinishReason.FILTER), UnusableKind.FILTERED),
        (raw(""), UnusableKind.EMPTY),
        (raw("The claim holds."), UnusableKind.MALFORMED),
        (raw(GOOD + BAD), UnusableKind.MALFORMED),
        (raw(f"```json\n{GOOD}\n```\n```json\n{BAD}\n```"), UnusableKind.MALFORMED),
        (raw(f"<think>{BAD}\n{GOOD}"), UnusableKind.MALFORMED),
        (raw(f"<think>{GOOD}</think>"), UnusableKind.MALFORMED),
        (raw('{"reasoning": "x", "result": true, "result": false}'), UnusableKind.MALFORMED),
        (raw('{"reasoning": "x", "result": "maybe"}'), UnusableKind.OFF_SCHEMA),
        (raw('{"reasoning": "x", "result": "yes"}'), UnusableKind.OFF_SCHEMA),
        (raw('{"reasoning": "x", "result": 1}'), UnusableKind.OFF_SCHEMA),
        (raw('"' + "x" * MAX_REPLY_CHARS + '"'), UnusableKind.MALFORMED),
    ],
)
def test_other_replies_are_unusable_with_a_kind(reply: RawReply, kind: UnusableKind):
    assert kind_of(reply) is kind


class AllDefaults(BaseModel):
    name: str = ""
    urls: list[str] = []


class Required(AllDefaults):
    year: int
    nested: AllDefaults


class Checked(AllDefaults):
    @model_validator(mode="before")
    @classmethod
    def not_empty(cls, value: dict[str, object]) -> dict[str, object]:
        if not value:
            raise ValueError("no value")
        return value


@pytest.mark.parametrize("text", ["{}", "Nothing found: {}"])
@pytest.mark.parametrize("schema", [AllDefaults, Required, Checked])
def test_empty_object_is_an_extraction_that_finds_nothing(text: str, schema: type[AllDefaults]):
    found = read_reply(raw(text), schema, purpose="extract")
    assert isinstance(found, schema)
    assert (found.name, found.urls) == ("", [])
    if isinstance(found, Required):
        assert (found.year, found.nested) == (None, None)
    # In the service, a class of a task file is only a schema.
    assert read_reply(raw(text), ReplySchema("Plan", json.dumps(schema.model_json_schema())), purpose="extract") is None


def test_empty_object_is_no_verdict():
    assert kind_of(raw("{}")) is UnusableKind.OFF_SCHEMA


@pytest.mark.parametrize("text", ['{"unexpected": 1}', '{"other": {}}', "[]"])
def test_object_without_any_known_field_is_not_an_empty_extraction(text: str):
    with pytest.raises(LLMOutputUnusable) as caught:
        read_reply(raw(text), AllDefaults, purpose="extract")
    assert caught.value.kind is UnusableKind.OFF_SCHEMA


TEXTS = st.text(st.characters(exclude_characters="{}[]<>\"'\\", exclude_categories=["Cs"]), max_size=30)
OBJECTS: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {"name": st.text(st.characters(exclude_categories=["Cs"]))},
    optional={"urls": st.lists(st.text(max_size=5), max_size=2)},
)
WRAPPINGS = st.sampled_from(
    [
        lambda text: text,
        lambda text: f"```json\n{text}\n```",
        lambda text: f"~~~\n{text}~~~",
        lambda text: f"<think>so {{not}} so</think>{text}",
        lambda text: f"so so</think>{text}",
        lambda text: f"[{text}]",
        lambda text: f'{{"answer": {text}}}',
        json.dumps,
    ]
)


@given(OBJECTS, WRAPPINGS, TEXTS, TEXTS)
def test_every_wrapping_of_one_object_is_parsed(value, wrap, before: str, after: str):
    wrapped = wrap(json.dumps(value))
    text = wrapped if wrapped.startswith('"') else f"{before}{wrapped}{after}"
    assert read_reply(raw(text), AllDefaults, purpose="extract") == AllDefaults(**value)


@given(OBJECTS, OBJECTS, WRAPPINGS.filter(lambda wrap: wrap is not json.dumps), TEXTS)
def test_two_different_objects_are_rejected(left, right, wrap, between: str):
    if left != right:
        with pytest.raises(LLMOutputUnusable):
            read_reply(raw(wrap(f"{json.dumps(left)}{between}{json.dumps(right)}")), AllDefaults, purpose="extract")


@pytest.mark.parametrize("piece", ["{", '{"a":', "<think>", '{"a": b}</think>', '{"a":1}'])
@pytest.mark.parametrize("before", ["", 'x {"a": ['])
def test_hostile_replies_are_rejected_fast(piece: str, before: str):
    text = (before + piece * MAX_REPLY_CHARS)[:MAX_REPLY_CHARS]
    started = time.process_time()
    with pytest.raises(LLMOutputUnusable):
        read_reply(raw(text), AllDefaults, purpose="extract")
    assert time.process_time() - started < 10


class Person(BaseModel):
    name: str
    born: int | None = None


class Staff(BaseModel):
    Title: str = ""
    title: str = ""
    people: list[Person] = []
    head: Person | None = None
    by_role: dict[str, int] = {}


TRUE = BinaryEvalResult(reasoning="so", result=True)
STAFF = Staff(people=[Person(name="Ada", born=1815)], head=Person(name="Bo"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"REASONING": "so", "RESULT": "True"}', TRUE),
        ('{"reasoning": "so", "Result": true}', TRUE),
        ('{"Verdict": {"REASONING": "so", "RESULT": true}}', TRUE),
        ('{"PEOPLE": [{"NAME": "Ada", "Born": 1815}], "Head": {"Name": "Bo"}}', STAFF),
        ('{"people": [], "TITLE": "ambiguous", "by_role": {"NAME": 1}}', Staff(by_role={"NAME": 1})),
    ],
)
def test_keys_may_differ_in_letter_case(text: str, found: BaseModel):
    parsed = read_reply(raw(text), type(found), purpose="verify")
    assert parsed is not None and parsed.model_dump() == found.model_dump()

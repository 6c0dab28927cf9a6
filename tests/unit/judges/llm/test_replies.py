from __future__ import annotations

import pytest
from pydantic import BaseModel

from judges.errors import LLMOutputUnusable, UnusableKind
from judges.llm.replies import MAX_REPLY_CHARS, read_reply
from judges.llm.wire import Finish, RawReply
from judges.verdict_reply import BinaryEvalResult

GOOD = '{"reasoning": "so", "result": true, "quotes": ["a"]}'


class Year(BaseModel):
    year: int


def raw(text: str, finish: Finish = Finish.STOP) -> RawReply:
    return RawReply(text=text, finish=finish, model="m")


def kind_of(reply: RawReply, schema: type[BaseModel] | None = BinaryEvalResult) -> UnusableKind:
    with pytest.raises(LLMOutputUnusable) as caught:
        read_reply(reply, schema, strict=True)
    return caught.value.kind


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\n {GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```\n",
        GOOD[:-1] + ', "confidence": 0.9, "result2": false}',
        '{"reasoning": "so", "result": true}',
    ],
)
def test_a_reply_whose_meaning_is_beyond_doubt_is_read(text: str):
    found = read_reply(raw(text), BinaryEvalResult, strict=True)
    assert isinstance(found, BinaryEvalResult)
    assert found.result is True


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (raw(GOOD, Finish.LENGTH), UnusableKind.TRUNCATED),
        (raw("", Finish.REFUSAL), UnusableKind.REFUSED),
        (raw(GOOD, Finish.FILTER), UnusableKind.FILTERED),
        (raw("", Finish.BROKEN), UnusableKind.MALFORMED),
        (raw(""), UnusableKind.EMPTY),
        (raw(" \n"), UnusableKind.EMPTY),
        (raw("The claim holds."), UnusableKind.MALFORMED),
        (raw(GOOD[:-2]), UnusableKind.MALFORMED),
        (raw(GOOD + GOOD), UnusableKind.MALFORMED),
        (raw(f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```"), UnusableKind.MALFORMED),
        (raw(f"Here you are: {GOOD}"), UnusableKind.MALFORMED),
        (raw('{"verdict": true}'), UnusableKind.OFF_SCHEMA),
        (raw('{"reasoning": "x", "result": "yes"}'), UnusableKind.OFF_SCHEMA),
        (raw('{"reasoning": "x", "result": 1}'), UnusableKind.OFF_SCHEMA),
        (raw('{"reasoning": "x", "result": null}'), UnusableKind.OFF_SCHEMA),
        (raw('{"reasoning": "x", "result": NaN}'), UnusableKind.OFF_SCHEMA),
        (raw("[true]"), UnusableKind.OFF_SCHEMA),
        (raw('"' + "x" * MAX_REPLY_CHARS + '"'), UnusableKind.MALFORMED),
    ],
)
def test_every_other_reply_is_unusable_in_its_own_way(reply: RawReply, kind: UnusableKind):
    assert kind_of(reply) is kind


def test_messages_do_not_repeat_what_the_model_wrote():
    with pytest.raises(LLMOutputUnusable) as caught:
        read_reply(raw('{"reasoning": "ignore all rules", "result": "yes"}'), BinaryEvalResult, strict=True)
    assert "ignore" not in str(caught.value)
    assert "result" in str(caught.value)


def test_an_extraction_is_read_as_leniently_as_its_class():
    assert read_reply(raw('{"year": "2020"}'), Year, strict=False) == Year(year=2020)


@pytest.mark.parametrize("finish", [Finish.STOP, Finish.LENGTH])
def test_free_text_needs_no_shape(finish: Finish):
    assert read_reply(raw("anything", finish), None, strict=False) is None


@pytest.mark.parametrize("finish", [Finish.STOP, Finish.LENGTH, Finish.REFUSAL])
def test_no_text_at_all_is_unusable_even_as_free_text(finish: Finish):
    kind_of(raw("", finish), None)

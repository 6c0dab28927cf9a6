from __future__ import annotations

import time

import pytest

from cache.page_text.sentences import is_one_block, sentence_around


@pytest.mark.parametrize(
    ("text", "part", "sentence"),
    [
        ('He said: "Two is it." Three is.', "is it", 'He said: "Two is it."'),
        ("The prize of Dr. Smith was 12.5 crowns. Two.", "crowns", "The prize of Dr. Smith was 12.5 crowns."),
        ("Es sind keine 5 Mio. Euro am 3. Mai. Zwei.", "Euro", "Es sind keine 5 Mio. Euro am 3. Mai."),
        ("It was not painted. 214 people saw it. Two.", "people", "214 people saw it."),
        ("没有。北塔有台阶。没有。", "有台阶。", "北塔有台阶。"),
        ("यह नहीं है। यह मीनार है। नहीं।", "मीनार", "यह मीनार है।"),
        ("ليس كذلك؟ هذا برج. لا.", "برج", "هذا برج."),
        ("# No dogs\nThe tower is old", "tower", "The tower is old"),
        ("It is not\nThe Hague", "Hague", "It is not\nThe Hague"),
        ("- No dogs\n- The tower is old\n- No cats", "tower", "- The tower is old"),
        ("no | The tower | old\nyes | no | no", "tower", "The tower"),
    ],
)
def test_sentence_list_item_or_cell(text: str, part: str, sentence: str):
    start = text.index(part)
    first, last = sentence_around(text, start, start + len(part))
    assert text[first:last].strip() == sentence


@pytest.mark.parametrize("between", [". The", "\nand "])
def test_one_block(between: str):
    assert is_one_block(f"a tower{between}a bell", 7, 7 + len(between))


@pytest.mark.parametrize("between", ["\n\n", "。\n", "\n- "])
def test_several_blocks(between: str):
    text = f"- a tower{between}a bell"
    assert not is_one_block(text, 9, 9 + len(between))


@pytest.mark.parametrize("text", ["a. " * 200_000, "\n" * 600_000, "- a\n" * 150_000])
def test_long_texts_are_searched_fast(text: str):
    before = time.process_time()
    for place in range(0, len(text), len(text) // 50):
        sentence_around(text, place, place + 1)
    is_one_block(text, 0, 2_000)
    assert time.process_time() - before < 0.5

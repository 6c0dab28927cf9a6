"""Texts split at their quotes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.dashboard.passages import passages, pieces

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=6)


@given(st.text(max_size=60), SPANS)
def test_pieces_join_to_the_text(text: str, spans: list[tuple[int, int]]):
    assert "".join(piece.text for piece in pieces(text, spans)) == text


def test_passage_contains_the_whole_sentence_of_a_quote():
    sentence = (
        f"The ministry of health {'of the north ' * 30}denied that the vaccine causes harm {'to pupils ' * 30}today."
    )
    text = f"{'It is so. ' * 40}{sentence} {'It is so. ' * 40}"
    start = text.index("the vaccine causes harm")
    [passage] = passages(text, [(start, start + 23)], context_chars=50)
    assert "".join(piece.text for piece in passage.pieces).strip() == sentence
    assert [piece.text for piece in passage.pieces if piece.quote is not None] == ["the vaccine causes harm"]

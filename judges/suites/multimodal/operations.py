"""Operations as lower-case strings, compared by cl100k_base tokens."""

from __future__ import annotations

from judges.suites.metrics import token_f1
from judges.suites.multimodal.readings import Counting
from judges.suites.multimodal.vocabulary import token_ids

CLICK = "CLICK"


def operation_string(op: str, value: str, *, keep_click_value: bool = False) -> str:
    """Return an operation as the string that is compared.

    >>> operation_string("CLICK", "None"), operation_string("TYPE", "New York")
    ('click', 'type new york')
    >>> operation_string("CLICK", "None", keep_click_value=True)
    'click none'
    """
    dropped = op == CLICK and not keep_click_value
    return (op if dropped else f"{op} {value}").strip().lower()


def operation_f1(predicted: str, gold: str, counting: Counting = Counting.SET) -> float:
    """Return the token F1 of two operation strings."""
    return token_f1(token_ids(predicted), token_ids(gold), multiset=counting is Counting.MULTISET)

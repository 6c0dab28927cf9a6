from __future__ import annotations

import pytest

from app.number_format import formatted


@pytest.mark.parametrize(
    ("value", "spec", "sign", "text"),
    [
        (0.125, ".2f", "+", "+0.12"),
        (-0.001, ".2f", "+", "0.00"),
        (0.5, ".4g", "", "0.5"),
    ],
)
def test_zero_has_no_sign(value: float, spec: str, sign: str, text: str) -> None:
    assert formatted(value, spec, sign=sign) == text

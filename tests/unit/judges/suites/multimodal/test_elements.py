from __future__ import annotations

import pytest

from judges.suites.multimodal.scoring import is_one_of, root_id

FOX = "<a bnid=36929><span bnid=36931><text bnid=36932>Fox Terrier (Smooth)</text></span></a>"


@pytest.mark.parametrize(
    ("element", "id"),
    [
        (FOX, "36929"),
        ('<div bnid="30997" role="dialog">', "30997"),
        ("<input type=text bnid='7'/>", "7"),
        ("<input bnid=7/>", "7"),
        ("<button bnid=46439 type=submit></button>", "46439"),
        ("  <a bnid=1>", "1"),
        ("<a><b bnid=2></b></a>", None),
        ("<a data-bnid=2>", None),
        ("text bnid=3", None),
        ("", None),
    ],
)
def test_id_of_the_outermost_element_is_read(element: str, id: str | None):
    assert root_id(element) == id


def test_elements_are_compared_by_id():
    assert is_one_of("<a bnid=1><text bnid=2>x</text></a>", ["<b bnid=3/>", '<a bnid="1">other words</a>'])
    assert not is_one_of("<a bnid=1>x</a>", ["<a bnid=11>x</a>", "<b><a bnid=1>x</a></b>"])


def test_elements_without_an_id_are_compared_by_text():
    assert is_one_of("<a>x</a>", ["<a>x</a>"])
    assert not is_one_of("<a>x</a>", ["<a bnid=1>x</a>"])


def test_no_element_matches_an_empty_list_of_targets():
    assert not is_one_of(FOX, [])

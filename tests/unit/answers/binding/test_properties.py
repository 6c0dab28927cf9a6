# ruff: noqa: E501, RUF001 - compact lists of parts, with punctuation of other scripts
"""Properties of bindings for arbitrary, long and hostile texts."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answers.binding import MAX_MARKS, bind
from answers.errors import TooManyParts
from tests.unit.answers.binding.structures import Structures

_PARTS = [
    "[1]", "[2, 3]", "[1-3]", "[^1]", "[^a]: ", "【3†L1-L2】", "¹", "²,³", "<sup>1</sup>", "(2)", "(Smith, 2020)", "Smith (2020)",
    "https://a.example/x", "[a](https://b.example)", "[[1]](https://c.example)", "[1]: https://d.example \"t\"", "[", "]", "(", ")",
    "\n", "\n\n", "# References\n", "Sources:\n", "1. Title: https://e.example\n", "[2] https://f.example - t\n", "- Smith, A. (2020). T.\n",
    "| a | b [1] |\n", "|---|---|\n", "```\n", "`", "$", "\\[", "\\]", "\\(", "$$", "> ", "- [x] ", "水。", "「火」！", "e.g. ", "Water. ", " ", "\r\n",
    "💧", "    ", "<a href=\"https://g.example\">x</a>", "---\n", "References: ",
]  # fmt: skip
TEXTS = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(_PARTS), max_size=60).map("".join))


@pytest.mark.slow
@given(TEXTS)
def test_spans_lie_in_the_text_and_in_order(text: str) -> None:
    binding = bind(text)
    for mark in binding.marks:
        assert 0 <= mark.start < mark.end <= len(text)
        assert 0 <= mark.statement_start < mark.statement_end <= len(text)
        assert mark.source is None or binding.sources[mark.source]
    spans = sorted({(mark.start, mark.end) for mark in binding.marks})
    assert [(mark.start, mark.end) for mark in binding.marks] == sorted(
        (mark.start, mark.end) for mark in binding.marks
    )
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert bind(text) == binding


_WORDS = ["water", "ice", "fire", "stone", "3.5", "e.g.", "U.S.", "Dr.", "approx.", "river"]


def generated(seed: int, count: int) -> tuple[str, list[tuple[str, str, str]]]:
    """Return a report and its ``(mark, url, statement)``, known by construction."""
    rng = random.Random(seed)
    written, truth = [], []
    sources = [f"https://s{number}.example/{rng.randrange(10**6)}" for number in range(1, 41)]
    for index in range(count):
        number = rng.randint(1, 40)
        words = " ".join(rng.choices(_WORDS, k=rng.randint(3, 12)))
        form = rng.choice(["[{}]", "【{}†source】", "[^{}]", "[Source {}]"]).format(number)
        statement = (
            f"Claim {words} stone{rng.choice([' ', ''])}{form}." if index % 2 else f"Claim {words} stone. {form}"
        )
        prefix = rng.choice(["", " ", "\n\n", "\n- ", "\n\n## Part\n\n"])
        written.append(f"{prefix or ' '}{statement}")
        truth.append((form, sources[number - 1], statement))
    form = rng.choice(
        ["[{n}] {u} - Title {n}", "{n}. Title {n}: {u}", '[{n}]: {u} "Title {n}"', "- [{n}] Title {n}. {u}"]
    )
    entries = "\n".join(form.format(n=number, u=url) for number, url in enumerate(sources, 1))
    return "# Report\n" + "".join(written) + "\n\n## References\n\n" + entries + "\n", truth


@pytest.mark.parametrize("seed", range(3))
def test_generated_report_is_bound_as_constructed(seed: int) -> None:
    text, truth = generated(seed, 100)
    binding = bind(text)
    assert [
        (
            text[mark.start : mark.end],
            None if mark.source is None else binding.sources[mark.source].url,
            text[mark.statement_start : mark.statement_end],
        )
        for mark in binding.marks
    ] == truth
    assert all(source.title == f"Title {number}" for number, source in enumerate(binding.sources, 1))


TRANSFORMATIONS: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "quoted": lambda text: "> " + text.replace("\n", "\n> "),
    "in a fence": lambda text: f"```markdown\n{text}\n```\n",
    "indented": lambda text: "  " + text.replace("\n", "\n  "),
}


@pytest.mark.parametrize("transformed", TRANSFORMATIONS.values(), ids=TRANSFORMATIONS)
def test_sources_are_bound_by_structure(transformed: Callable[[str], str]) -> None:
    for seed in range(30):
        made = Structures(seed)
        binding = bind(text := transformed(made.text))
        found: dict[str, set[str | None]] = {}
        for mark in binding.marks:
            assert mark.source is not None
            statement = text[mark.statement_start : mark.statement_end]
            found.setdefault(statement, set()).add(binding.sources[mark.source].url)
        assert found == made.truth, seed
        assert not binding.unused()


_FORMS = [
    "Gauge {n} weighs {n} kg [{m}]. ",
    "- Height {n}: {n} m\n- Source: https://a.example/{n}\n\n",
    "The pump {n} moves {n} l/s ([site](https://b.example/{n})). \n\n",
    "1. Fact {n} is {n}.\n   - Source: [site](https://c.example/{n})\n",
    "It cost {n} (doi:10.1000/a{n}b). \n\n",
]


def test_five_thousand_citations_take_less_than_three_seconds() -> None:
    """Measures CPU time, which does not depend on the load. It takes 1 s."""
    facts = "".join(_FORMS[n % 5].format(n=n, m=n % 300 + 1) for n in range(5_000))
    text = facts + "\n## References\n\n" + "".join(f"[{m}] https://r.example/{m} - Title {m}\n" for m in range(1, 301))
    started = process_time()
    binding = bind(text)
    assert process_time() - started < 3
    assert len(binding.marks) == 5_000
    assert not binding.unbound()


def test_more_marks_than_the_limit_are_an_error() -> None:
    with pytest.raises(TooManyParts):
        bind("[1-50] " * (MAX_MARKS // 50 + 1))


SHAPES = [
    "[", "]", "[]", '"', "[^1]", "[^1]: a\n", "[1] ", "[1-60] ", "(", "¹", "<sup>", "<sup>1", "$a", "$", "\\(", "\\[", "` ``", "`", "```\n",
    "\n", "a\n", "|\n", "|a", ">", "> a\n", "- a\n", "1. https://a.example\n", "[1] https://a.example/x - t ", "# References\n",
    "# References\n[1] https://a.example/x\n", "Sources:\n", "sources ", "References: [1] ", ".", "。", "【1†", "Smith Jones ", "(Smith, 2020) ",
    "A", "a.", "[a](https://a.example/x \"", "[[1]](https://a.example/x)", "](", "<a href=\"https://a.example\">x</a>", " ", "*", "1", "[a][b]",
    "## A\ntext [1]\n### Sources\n1. T: https://a.example/x\n", "a\n---\n", "# Notes\n[^a]: b\n    c\n", "https://a.example/x ", "[x]: https://a.example \"t\n",
]  # fmt: skip
CHARS = 50_000
MAX_CPU_S, MAX_SUM_S = 5, 25
"""Limits for each shape, and for all of them."""
MAX_MEMORY = 1 << 30

_CHILD = """
import json, resource, sys, time
from answers.binding import bind
from answers.errors import TooManyParts
from tests.unit.answers.binding.structures import Structures
shapes, chars, max_cpu_s, max_sum_s, max_memory = json.load(sys.stdin)
resource.setrlimit(resource.RLIMIT_AS, (max_memory, max_memory))
for shape in shapes:
    print(shape[:20].encode(), flush=True)
    limit = min(int(time.process_time()) + max_cpu_s + 1, max_sum_s)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
    try:
        bind((shape * (chars // len(shape) + 1))[:chars])
    except TooManyParts:
        pass
"""


@pytest.mark.slow
def test_hostile_texts_take_linear_time_and_limited_memory() -> None:
    """Each shape takes at most 0.5 s, and all take 6 s. Quadratic cost exceeds a limit of the process."""
    child = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=json.dumps((SHAPES, CHARS, MAX_CPU_S, MAX_SUM_S, MAX_MEMORY)),
        text=True,
        capture_output=True,
        check=False,
    )
    assert child.returncode == 0, child.stdout[-100:] + child.stderr[-2_000:]

# ruff: noqa: RUF001 - labels and facts in other scripts
"""Random reports whose statements have sources by structure, with the true sources of each statement."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

_LABELS = [
    "Source",
    "Sources",
    "Source(s)",
    "Ref",
    "References",
    "Via",
    "Link",
    "URL",
    "来源",
    "出处",
    "数据来源",
    "Quelle",
    "Quellen",
    "Fuentes",
    "出典",
    "Read more",
    "Data source",
]
_FACTS = [
    "The tower {n} is {n} m tall.", "Sales rose by {n} %.", "第{n}座桥长{n}米。", "Die Stadt {n} hat {n} Einwohner.",
    "🏔️ The pass {n} is {n} m high.", "Unit {n} uses 5.{n} kWh per day, e.g. in winter.", "Model {n} costs ${n}",
]  # fmt: skip
_VALUES = [
    "Height: {n} m",
    "**Opened:** {n}",
    "Visitors ({n}): 6 million",
    "人口：{n}万",
    "*Price*: {n} EUR",
    "高度：{n}米",
]
_URLS = ["https://a{n}.example/x", "https://b{n}.example/p_(q)?x=1&y=2", "http://www.c{n}.example/p.html"]
_LINKS = ["{url}", "<{url}>", "[Site]({url})", '[3: Official page]({url} "T")', "[来源网站]({url})"]
_DECORATIONS = ["{label}{colon}", "**{label}{colon}**", "_{label}{colon}_", "*{label}*{colon}", "🔗 {label}{colon}"]


class Structures:
    """One random report: ``text``, and ``truth`` with the URLs by statement."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = 100
        self._lines = ["# Report", ""]
        self.truth: dict[str, set[str]] = {}
        forms: list[Callable[[], None]] = [
            self._nested, self._values, self._groups, self._definitions, self._table, self._sections,
        ]  # fmt: skip
        for form in self._random.sample(forms, 3):
            self._add(f"## Part {self._number()}", "")
            form()
            if self._random.random() < 0.5:
                self._add(f"This remark number {self._number()} has no source.", "")
        self.text = "\n".join(self._lines)

    def _add(self, *lines: str) -> None:
        self._lines += lines

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _facts(self, most: int, forms: Sequence[str] = _FACTS) -> list[str]:
        return [self._random.choice(forms).format(n=self._number()) for _ in range(self._random.randint(1, most))]

    def _source(self, facts: Sequence[str], most: int = 3) -> list[str]:
        """Bind facts to new URLs, and return the links."""
        urls = [self._random.choice(_URLS).format(n=self._number()) for _ in range(self._random.randint(1, most))]
        for fact in facts:
            self.truth.setdefault(fact, set()).update(urls)
        return [self._random.choice(_LINKS).format(url=url) for url in urls]

    def _line(self, facts: Sequence[str]) -> str:
        label = self._random.choice(_LABELS)
        colon = ":" if label.isascii() else "："
        links = self._random.choice([", ", "; ", " | ", "、", " and "]).join(self._source(facts))
        written = self._random.choice(_DECORATIONS).format(label=label, colon=colon)
        return f"{written} {links}{self._random.choice(['', '.', ' (accessed 3 May 2025)'])}"

    def _nested(self) -> None:
        blank = [""] * self._random.randint(0, 1)
        indent = " " * self._random.randint(3, 4)
        for number in range(1, self._random.randint(2, 5)):
            [fact] = self._facts(1)
            self._add(f"{number}. {fact}", *blank)
            details = self._facts(2) if self._random.random() < 0.5 else []
            self._add(*(f"{indent}* {each}" for each in details))
            if details and self._random.random() < 0.5:
                self._add(f"{indent}{indent}- {self._line(details[-1:])}")
                details.pop()
            bullet = self._random.choice(["- ", "+ "] if details else ["- ", ""])
            self._add(f"{indent}{bullet}{self._line([fact, *details])}", *blank)
        self._add("")

    def _values(self) -> None:
        is_first = self._random.random() < 0.3
        for _ in range(self._random.randint(1, 3)):
            values = self._facts(4, _VALUES)
            line = self._line(values)
            self._add(f"### Thing {self._number()}", "")
            self._add(*(f"- {each}" for each in ([line, *values] if is_first else [*values, line])), "")

    def _groups(self) -> None:
        for _ in range(self._random.randint(1, 3)):
            facts = self._facts(4)
            line = self._line(facts)
            self._add(*(f"* {each}" for each in facts), *[""] * self._random.randint(0, 1), line, "")
            sentences = [each if each[-1] in ".。" else f"{each}." for each in self._facts(3)]
            self._add(" ".join(sentences), *[""] * self._random.randint(0, 1), self._line(sentences), "")

    def _definitions(self) -> None:
        for _ in range(self._random.randint(1, 3)):
            facts = self._facts(3)
            self._add(f"Term {self._number()}", *(f": {each}" for each in facts), f": {self._line(facts)}", "")

    def _table(self) -> None:
        self._add("| Source | Fact |", "|---|---|")
        for fact in self._facts(4):
            urls = self._source([fact])
            row = f"| {'<br>'.join(urls)} | {fact} |"
            self.truth[row] = self.truth.pop(fact)
            self._add(row)
        self._add("")

    def _sections(self) -> None:
        for _ in range(self._random.randint(2, 4)):
            self._add(f"### Section {self._number()}", "")
            facts = self._facts(4)
            self._add(*(f"- {each}" for each in facts), "")
            title = self._random.choice(
                ["Sources:", "**Sources**", "References:", "来源：", "📚 Quellen:", "#### Sources"]
            )
            self._add(title, "", *(f"- {each}" for each in self._source(facts, 4)), "")

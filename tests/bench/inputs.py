"""Input of the benchmarks: answers, and their page caches in the public folder layout.

The amount is about that of the public toolkit's measurement: 10 tasks, 23 answers, 256 pages, 550 requests (there 466
to 537), and a sequence of 50 to 59 replies with the default limits (there 49 if the two votes that are always needed
are requested together). That is the growth of the run time from 300 to 1,000 ms of latency, divided by 700 ms.

The files are created once and stored in the temporary folder under a digest of their generator, because 256 pages
take a while.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Final, Literal

from mind2web2 import CacheFileSys
from mind2web2.page_metadata import METADATA_FILE
from tests.bench import pages
from tests.standin.rules import is_sampled

AGENT = "bench"
MISSING_PERCENT = 2
"""Share of the full-size pages that are not in the page cache. Their host does not exist."""
_SCRIPT = Path(__file__).with_name("task_script.py")

MAX_CITATIONS: Final = 60
UNCITED: Final = ("recipe_notes", 1)
"""Task and number of the answer that cites nothing."""
PASS_RATE: Final = 0.8
"""Share of the claims that the pages contain."""
SEED: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Work of one task script: ``answers`` different answers, each of ``entries`` entries with ``sources`` pages.

    The script checks ``claims`` on ``pages_per_claim`` pages, and ``statements`` without a page, for every
    ``every``-th entry. ``concurrent`` entries or claims are checked at the same time.
    """

    id: str
    answers: int
    entries: int
    sources: int
    claims: Sequence[str]
    statements: Sequence[str] = ()
    pdfs: int = 0
    """Number of entries of an answer whose first page is a PDF. Its heading is extracted."""
    one_by_one: bool = False
    """Whether each entry is extracted by a request of its own."""
    further_extractions: int = 0
    pages_per_claim: int = 1
    every: int = 1
    concurrent: Literal["", "entries", "claims"] = ""
    has_steps: bool = False
    """Whether a failed claim skips the following claims of its entry."""
    in_order: bool = False
    """Whether a failed entry skips the following entries."""

    def url(self, answer: int, entry: int, source: int) -> str:
        suffix = ".pdf" if self.is_pdf(entry, source) else ""
        return f"https://www.{self.id.replace('_', '-')}.example/{answer}/entry-{entry}/{source}{suffix}"

    def name(self, answer: int, entry: int) -> str:
        return f"{self.id.split('_')[0].capitalize()} {answer % self.answers + 1}-{entry + 1}"

    def facts(self, answer: int, entry: int) -> list[str]:
        """Return what the pages of an entry say about it: a fixed sample of the claims that the script checks."""
        name = self.name(answer, entry)
        claims = [claim.format(name=name, detail=f"the detail of {name}") for claim in self.claims]
        return [claim for claim in claims if is_sampled(claim, seed=SEED, rate=PASS_RATE)]

    def is_pdf(self, entry: int, source: int) -> bool:
        return source == 0 and entry < self.pdfs

    def number(self, answer: int, entry: int, source: int) -> int:
        """Return the number of a page, which determines its content."""
        return int.from_bytes(hashlib.sha256(f"{self.id} {answer} {entry} {source}".encode()).digest()[:4], "big")

    def is_missing(self, answer: int, entry: int, source: int) -> bool:
        """Return whether a page of full size is not in the page cache."""
        return self.number(answer, entry, source) % 100 < MISSING_PERCENT

    def places(self) -> Iterator[tuple[int, int, int]]:
        """Yield (answer, entry, source) of every page."""
        for answer in range(self.answers):
            for entry in range(self.entries):
                for source in range(self.sources):
                    yield answer, entry, source


TASKS = (
    Task(
        id="ad_archive", answers=2, entries=13, sources=1, one_by_one=True, further_extractions=1, every=4,
        claims=("{name} was printed in {detail}.", "The archive holds the advertisement {name}."),
    ),
    Task(
        id="card_prices", answers=3, entries=4, sources=2, has_steps=True, concurrent="entries",
        claims=("{name} is sold here.", "The price of {name} is {detail}.", "{name} has enough memory."),
    ),
    Task(
        id="city_parks", answers=3, entries=4, sources=3,
        claims=("{name} lies in {detail}.", "Entry to {name} is free.", "{name} is a public park."),
    ),
    Task(
        id="film_directors", answers=2, entries=4, sources=3, one_by_one=True, pages_per_claim=2, in_order=True,
        claims=("{name} studied with {detail}.",), statements=("The years given for {name} fit those of the film.",),
    ),
    Task(
        id="hotel_search", answers=2, entries=5, sources=2, further_extractions=1, concurrent="entries",
        claims=("{name} is near the station.", "A night at {name} costs {detail}."),
    ),
    Task(
        id="meeting_dates", answers=2, entries=4, sources=3, further_extractions=1, pages_per_claim=3,
        claims=("{name} takes place on {detail}.",), statements=("{name} takes place indoors.",), concurrent="claims",
    ),
    Task(
        id="museum_hours", answers=3, entries=4, sources=3, further_extractions=1, has_steps=True,
        claims=("{name} opens at {detail}.", "A ticket of {name} costs little."),
    ),
    Task(
        id="paper_authors", answers=2, entries=5, sources=2, pdfs=4, concurrent="claims",
        claims=("{name} was written by {detail}.",), statements=("{name} is a paper.",),
    ),
    Task(
        id="race_winners", answers=2, entries=13, sources=1, every=3, concurrent="claims",
        claims=("{name} won.", "{name} needed {detail}."),
    ),
    Task(
        id="recipe_notes", answers=2, entries=5, sources=2, one_by_one=True,
        claims=("{name} takes {detail}.",), statements=("The answer gives time, flour and oven for {name}.",),
    ),
)  # fmt: skip
ANSWERS = sum(task.answers for task in TASKS)
PAGES = sum(1 for task in TASKS for _ in task.places())


def answers_folder(count: int) -> Path:
    """Return ``<agent>/<task>/answer_<k>.md`` with ``count`` answers; additional answers share the existing pages."""

    def make(folder: Path) -> None:
        for place in range(count):
            task, number = _nth(place)
            path = folder / AGENT / task.id / f"answer_{number + 1}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(answer_text(task, number), encoding="utf-8")

    return _made(f"answers-{count}", make)


def cache_folder(*, tiny: bool) -> Path:
    """Return ``<agent>/<task>/`` with the 256 pages."""

    def make(folder: Path) -> None:
        with ProcessPoolExecutor() as workers:
            for done in [workers.submit(_fill_cache, folder, task, tiny) for task in TASKS]:
                done.result()

    return _made("cache-tiny" if tiny else "cache-full", make)


def scripts_folder() -> Path:
    """Return a folder with the script of each task."""

    def make(folder: Path) -> None:
        source = _SCRIPT.read_text("utf-8")
        for task in TASKS:
            head = f"TASK: dict[str, Any] = {asdict(task)!r}"
            (folder / f"{task.id}.py").write_text(source.replace("TASK: dict[str, Any] = {}", head), encoding="utf-8")

    return _made("scripts", make)


def answer_text(task: Task, number: int) -> str:
    """Return an answer with its numbered entries and up to 60 citations.

    Additional answers describe the same entries in other words.
    """
    random = Random(f"{task.id} {number}")
    is_cited = (task.id, number) != UNCITED
    lines = [f"# What was found on {task.id.replace('_', ' ')}", "", pages.prose(random, 900), ""]
    for entry in range(task.entries):
        links = ", ".join(
            f"[source {source + 1}]({task.url(number % task.answers, entry, source)})" for source in range(task.sources)
        )
        sources = f" ({links})" if is_cited else ""
        lines += [f"{entry + 1}. **{task.name(number, entry)}** {pages.prose(random, 120)}{sources}"]
    names = [task.name(number, entry) for entry in range(task.entries)]
    lines += ["", *(statement.format(name=name) for statement in task.statements for name in names)]
    lines += ["", pages.prose(random, 500)]
    return "\n".join([*lines, *_further_reading(task, number)] if is_cited else lines)


def _further_reading(task: Task, number: int) -> Iterator[str]:
    """Yield a list of links that no script checks, until the answer has between its own number of citations and 60."""
    random = Random(f"further {task.id} {number}")
    places = [place for place in task.places() if place[0] == number % task.answers]
    yield from ("", "## Further reading", "")
    for _ in range(random.randint(0, MAX_CITATIONS - task.entries * task.sources)):
        yield f"- [{pages.prose(random, 30)}]({task.url(*random.choice(places))})"


def _nth(place: int) -> tuple[Task, int]:
    """Return the task and the number of the answer at ``place``: first all different ones, then in rounds."""
    rounds, rest = divmod(place, ANSWERS)
    for task in TASKS:
        if rest < task.answers:
            return task, rounds * task.answers + rest
        rest -= task.answers
    raise AssertionError(place)


def _fill_cache(folder: Path, task: Task, tiny: bool) -> None:
    cache = CacheFileSys(folder / AGENT / task.id)
    for answer, entry, source in task.places():
        number = task.number(answer, entry, source)
        url, facts = task.url(answer, entry, source), task.facts(answer, entry)
        if not tiny and task.is_missing(answer, entry, source):
            continue
        if task.is_pdf(entry, source):
            cache.put_pdf(url, pages.pdf(number, facts=facts, tiny=tiny))
        else:
            text = pages.page_text(number, facts=facts, tiny=tiny)
            cache.put_web(url, text, pages.screenshot(number, tiny=tiny))
    cache.save()
    (cache.task_dir / METADATA_FILE).unlink()  # only our caches have it, not those of the toolkit


def _made(name: str, make: Callable[[Path], None]) -> Path:
    """Return the folder of this name and create it if it is missing; creation is atomic."""
    target = Path(tempfile.gettempdir()) / f"assay-bench-{os.getuid()}" / _version() / name
    if not target.is_dir():
        draft = target.with_name(f".{name}-{os.getpid()}")
        draft.mkdir(parents=True, mode=0o755)
        try:
            make(draft)
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return target


def _version() -> str:
    sources = (Path(pages.__file__), Path(__file__), _SCRIPT)
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]

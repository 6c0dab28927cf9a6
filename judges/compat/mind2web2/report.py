"""Report of an agent's results: one static HTML file that needs no network.

Answers, claims, URLs and replies of models are untrusted. Jinja escapes all of them, Markdown is rendered by
``answers.markdown``, only http(s) URLs become links, and a content security policy allows only the script and the
styles of the file itself.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it.token import Token
from markupsafe import Markup
from PIL import Image

from answers.markdown import linked, render_markdown
from answers.submission import answer_number
from cache.atomic_files import write_atomic
from cache.page_text.screenshot_parts import UNREADABLE
from cache.terminal_text import strip_controls
from mind2web2.metrics import (
    METRICS_FILE,
    Metrics,
    agent_metrics,
    find_answers,
    is_success,
    is_without_result,
    valid_score,
)
from mind2web2.results import as_object, latest_result_file, read_object
from mind2web2.submission import TaskInfo
from mind2web2.utils.cache_filesys import CacheFileSys, CacheIndexError
from rubrics.tree_json import SUPPLIED, is_penalty

__all__ = ["REPORT_FILE", "NoAnswers", "write_report"]

REPORT_FILE = "report.html"
THUMBNAIL_SIZE = (480, 720)
MAX_CAPTURES: Final = 400
"""Maximum number of captures whose screenshots are read."""
MAX_THUMBNAIL_BYTES = 8 * 1024 * 1024
"""Size of all thumbnails together, as they are encoded in the file."""
MAX_PLAIN_CHARS = 8_000_000
"""Size of all answers with their checks, above which the file contains them compressed."""

_ASSETS = Path(__file__).with_name("report_assets")
_THUMBNAIL_QUALITY = 60
_OUTCOMES = {
    "failed": "failed",
    "not_judged": "not judged",
    "undecided": "undecided",
    "skipped": "skipped",
    "passed": "passed",
}
"""Labels of outcomes, in the order in which checks are shown."""
_SHOWN_METRICS = frozenset(
    {
        "answer_length_words",
        "by_domain",
        "judge_models",
        "missing_answers",
        "missing_results",
        "num_runs",
        "num_tasks",
        "partial_completion",
        "pass_at_k",
        "per_task",
        "rejected_requests",
        "stale_results",
        "success_rate",
        "task_selection",
        "time_minutes",
    }
)
"""Keys that stored metrics need. The public toolkit writes all of them."""
PENALTY, BY_CODE = "penalty", "decided by code"
_NOTES = {"no page": "page not available", "too long": "page too long for the judge", "error": "request failed"}
_OPEN_OUTCOMES = ("failed", "not_judged", "undecided")
_SCORE_BINS: Sequence[tuple[str, Callable[[float], bool], str]] = (
    ("1", is_success, "fill-passed"),
    ("0.75 to < 1", lambda score: score >= 0.75, "fill-part"),
    ("0.5 to < 0.75", lambda score: score >= 0.5, "fill-part"),
    ("0.25 to < 0.5", lambda score: score >= 0.25, "fill-part"),
    ("> 0 to < 0.25", lambda score: score > 0.0, "fill-part"),
    ("0", lambda score: score <= 0.0, "fill-failed"),
)
"""Bars of the chart of scores: label, whether a score belongs to it if it belongs to none above, CSS class."""


class NoAnswers(ValueError):
    """There is nothing to report."""


@dataclass(slots=True, kw_only=True)
class PageCheck:
    """Judgement of a claim on one page; ``url`` is None for the answer alone."""

    url: str | None
    passed: bool | None
    votes: Sequence[str]
    reasoning: str
    note: str
    thumbnail: int | None = None
    stored_as: str = ""

    @property
    def is_link(self) -> bool:
        return self.url is not None and self.url.lower().startswith(("http://", "https://"))


@dataclass(slots=True, kw_only=True)
class Check:
    """A node that was verified, or decided by code, with its claim and the judgement on each page.

    ``outcome`` is "failed" for a penalty that applies. ``tags`` are further properties, in words.
    """

    anchor: str
    node_id: str
    description: str
    outcome: str
    tags: Sequence[str]
    claim: str
    reason: str
    skipped_because: str
    error: str
    pages: Sequence[PageCheck]


@dataclass(slots=True, kw_only=True)
class TreeNode:
    """A node of the tree. ``anchor`` is that of its check, "" for a group."""

    node_id: str
    description: str
    outcome: str
    score: float | None
    tags: Sequence[str]
    anchor: str
    children: Sequence[TreeNode]


@dataclass(slots=True, kw_only=True)
class ReportedAnswer:
    """One answer with its newest result, or with the reason why it has none (``problem``).

    ``html`` is None if there is no copy of the answer beside the result.
    """

    anchor: str
    task_id: str
    run: int
    html: Markup | None
    score: float | None = None
    low: float | None = None
    high: float | None = None
    problem: str = ""
    judge: str = ""
    result_name: str = ""
    checks: Sequence[Check] = ()
    trees: Sequence[TreeNode] = ()
    rejections: Sequence[Mapping[str, str]] = ()
    extractions: Sequence[tuple[str, str]] = ()
    captures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Captured pages of the result by URL."""
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def open_checks(self) -> list[Check]:
        return [check for check in self.checks if check.outcome in _OPEN_OUTCOMES]

    @property
    def settled_checks(self) -> list[Check]:
        return [check for check in self.checks if check.outcome not in _OPEN_OUTCOMES]

    @property
    def states(self) -> str:
        """Words that the filter of the page looks for."""
        success = ["success"] if self.score is not None and is_success(self.score) else []
        return " ".join([*self.counts, *success, *(["no_result"] if self.score is None else [])])


def write_report(
    agent: str,
    results_root: str | Path,
    cache_root: str | Path | None = None,
    tasks: Iterable[str] | None = None,
    output: str | Path | None = None,
    on_problem: Callable[[str], object] = lambda problem: None,
    *,
    stored_bodies: Callable[[Sequence[str]], Mapping[str, bytes]] = lambda digests: {},
) -> Path:
    """Write the report of an agent and return its path. Blocks for seconds if there are many answers.

    Args:
        cache_root: Folder of the page caches, for thumbnails.
        tasks: Only these tasks.
        output: Path of the file (default: ``<results>/<agent>/report.html``).
        on_problem: Called with the reason why screenshots are left out.
        stored_bodies: Returns those stored bodies of captures that can be read, by their SHA-256.

    Raises:
        NoAnswers: The results folder contains no answer of the agent.
        ValueError: The metadata of an answer are invalid; the message names the file.
    """
    root = Path(results_root)
    answers = list(_read_answers(agent, root, None if tasks is None else list(tasks)))
    if not answers:
        raise NoAnswers(
            f"no answers of {agent!r} in {root / agent}: evaluate them first, or set another results folder"
        )
    thumbnails = _Thumbnails(None if cache_root is None else Path(cache_root) / agent, on_problem, stored_bodies)
    thumbnails.add_all(answers)
    metrics = _metrics(agent, root, {answer.task_id for answer in answers}, selected=tasks is not None)
    path = root / agent / REPORT_FILE if output is None else Path(output)
    write_atomic(path, _render(agent, answers, metrics, thumbnails.encoded).encode("utf-8", errors="replace"))
    return path


def _metrics(agent: str, root: Path, task_ids: set[str], *, selected: bool) -> Metrics:
    """Return the stored metrics if they are newer than the results; otherwise those of the answers in the report."""
    path = root / agent / METRICS_FILE
    stored = None if selected else read_object(path)
    if stored is not None and stored.keys() >= _SHOWN_METRICS:
        results = (root / agent).glob("*/answer_*/results/*.json")
        if all(result.stat().st_mtime <= path.stat().st_mtime for result in results):
            return stored
    tasks = [TaskInfo(task_id) for task_id in sorted(task_ids)]
    return agent_metrics(agent, None, root, tasks)


def _read_answers(agent: str, root: Path, tasks: Sequence[str] | None) -> Iterator[ReportedAnswer]:
    folder = root / agent
    present = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    number = 0
    for task_id in present:
        if tasks is not None and task_id not in tasks:
            continue
        copies = find_answers(agent, task_id, None, root)
        for run, output in _answer_folders(folder / task_id):
            if run not in copies and latest_result_file(output) is None:
                continue
            number += 1
            text = copies[run].path.read_text(encoding="utf-8", errors="replace") if run in copies else None
            yield _reported(f"a{number}", task_id, run, text, output)


def _answer_folders(task: Path) -> list[tuple[int, Path]]:
    """Return the folders ``answer_<k>`` of a task, by k."""
    numbered = ((answer_number(f"{path.name}.md"), path) for path in task.iterdir() if path.is_dir())
    return sorted((run, path) for run, path in numbered if run is not None)


def _reported(anchor: str, task_id: str, run: int, text: str | None, output: Path) -> ReportedAnswer:
    html = None if text is None else _answer_html(text)
    answer = ReportedAnswer(anchor=anchor, task_id=task_id, run=run, html=html)
    path = latest_result_file(output)
    result = None if path is None else read_object(path)
    if path is None or result is None:
        failure = read_object(output / "failed.json") or {}
        answer.problem = _text(failure.get("error")) or "There is no result: the answer has not been judged."
        return answer
    builder = _TreeBuilder(anchor)
    parts = [part for part in _list(result.get("eval_breakdown")) if isinstance(part, Mapping)]
    answer.trees = [builder.node(as_object(part.get("verification_tree"))) for part in parts]
    answer.checks = sorted(builder.checks, key=lambda check: list(_OUTCOMES).index(check.outcome))
    counts = Counter(check.outcome for check in answer.checks)
    answer.counts = {outcome: counts[outcome] for outcome in _OUTCOMES if counts[outcome]}
    answer.extractions = [
        (_text(name), _pretty(value))
        for part in parts
        for info in _list(part.get("info"))
        for name, value in as_object(info).items()
    ]
    answer.captures = {_text(page.get("url")): page for page in _list(result.get("pages")) if isinstance(page, Mapping)}
    usage = as_object(result.get("judge_usage"))
    answer.rejections = [
        {name: _text(as_object(one).get(name)) for name in ("check", "url", "reason")}
        for one in _list(usage.get("rejections"))
    ]
    answer.judge, answer.result_name = _judge(result), path.name
    bounds = as_object(result.get("score"))
    answer.low, answer.high = valid_score(bounds.get("low")), valid_score(bounds.get("high"))
    if is_without_result(result):
        answer.problem = "Judging failed for some claims, so the answer counts as without a result."
    else:
        answer.score = valid_score(result.get("final_score"))
        answer.problem = "" if answer.score is not None else f"The result has no valid final_score: {path.name}."
    return answer


class _TreeBuilder:
    """Reader of verification trees, which collects the checks of one answer."""

    def __init__(self, anchor: str) -> None:
        self._anchor = anchor
        self.checks: list[Check] = []

    def node(self, fields: Mapping[str, Any], *, in_penalty: bool = False) -> TreeNode:
        in_penalty = in_penalty or is_penalty(fields)
        outcome = _outcome(fields)
        outcome = _OUTCOMES_OF_PENALTIES.get(outcome, outcome) if in_penalty else outcome
        children = [child for child in _list(fields.get("children")) if isinstance(child, Mapping)]
        evidence = fields.get("evidence")
        anchor = ""
        if isinstance(evidence, Mapping) or not children:
            anchor = f"{self._anchor}-{len(self.checks) + 1}"
            self.checks.append(_check(anchor, fields, as_object(evidence), outcome, in_penalty=in_penalty))
        return TreeNode(
            node_id=_text(fields.get("id")),
            description=_text(fields.get("desc")),
            outcome=outcome,
            score=valid_score(fields.get("score")),
            tags=_tags(fields, in_penalty=in_penalty),
            anchor=anchor,
            children=[self.node(child, in_penalty=in_penalty) for child in children],
        )


_OUTCOMES_OF_PENALTIES = {"passed": "failed", "partial": "failed", "failed": "passed"}


def _tags(fields: Mapping[str, Any], *, in_penalty: bool) -> list[str]:
    tags = {
        PENALTY: in_penalty,
        "critical": fields.get("critical") is True,
        "in sequence": fields.get("strategy") == "sequential" and bool(_list(fields.get("children"))),
        "page supplied by the agent": fields.get("provenance") == SUPPLIED,
    }
    return [tag for tag, applies in tags.items() if applies]


def _check(
    anchor: str, fields: Mapping[str, Any], evidence: Mapping[str, Any], outcome: str, *, in_penalty: bool
) -> Check:
    judged = [_page_check(as_object(check)) for check in _list(evidence.get("checks"))]
    if not judged and _text(fields.get("reasoning")):  # a result without evidence
        votes = [_vote(as_object(vote).get("result")) for vote in _list(fields.get("votes"))]
        url = next((_text(url) for url in _list(fields.get("sources"))), None)
        passed = fields.get("outcome") == "passed"
        note = BY_CODE if fields.get("check") is not None else ""
        judged = [PageCheck(url=url, passed=passed, votes=votes, reasoning=_text(fields.get("reasoning")), note=note)]
    shown = {page.url for page in judged}
    sources = evidence.get("sources") if evidence else fields.get("sources")
    others = [_text(url) for url in _list(sources) if _text(url) not in shown]
    judged += [
        PageCheck(url=url, passed=None, votes=(), reasoning="", note="not judged on this page") for url in others
    ]
    return Check(
        anchor=anchor,
        node_id=_text(fields.get("id")),
        description=_text(fields.get("desc")),
        outcome=outcome,
        tags=_tags(fields, in_penalty=in_penalty),
        claim=_text(evidence.get("claim") or fields.get("claim")),
        reason=_text(fields.get("reason")).replace("_", " "),
        skipped_because=_text(evidence.get("skipped_because") or fields.get("blocked_by")),
        error=_text(evidence.get("error")),
        pages=judged,
    )


def _page_check(check: Mapping[str, Any]) -> PageCheck:
    url = check.get("url")
    return PageCheck(
        url=None if url is None else _text(url),
        passed=check.get("passed") is True,
        votes=[_vote(vote) for vote in _list(check.get("votes"))],
        reasoning=_text(check.get("reasoning")),
        note=_NOTES.get(_text(check.get("note")), _text(check.get("note"))),
    )


def _vote(vote: object) -> str:
    return "no reply" if vote is None else "supported" if vote is True else "not supported"


def _outcome(fields: Mapping[str, Any]) -> str:
    """Return the outcome of a node. Results of the public toolkit have only a status."""
    outcome = fields.get("outcome") if not fields.get("children") else None
    outcome = str(outcome or fields.get("status"))
    return outcome if outcome in _OUTCOMES or outcome == "partial" else "undecided"


class _Thumbnails:
    """Thumbnails of cited pages from the page cache, else from captures, each stored once, within the total size."""

    def __init__(
        self,
        cache: Path | None,
        on_problem: Callable[[str], object],
        stored_bodies: Callable[[Sequence[str]], Mapping[str, bytes]],
    ) -> None:
        self._cache = cache
        self._stored_bodies = stored_bodies
        self._on_problem = on_problem
        self._by_digest: dict[str, int] = {}
        self._size = 0
        self._is_full = False
        self.encoded: list[str] = []
        """Data URIs by index."""

    def add_all(self, answers: Sequence[ReportedAnswer]) -> None:
        """Set the thumbnails of all checks: first those of failed checks, because the space is limited."""
        pairs = [(answer, check) for answer in answers for check in answer.checks]
        caches: dict[str, CacheFileSys | None] = {}
        captured: list[tuple[PageCheck, str]] = []
        for answer, check in sorted(pairs, key=lambda one: list(_OUTCOMES).index(one[1].outcome)):
            if answer.task_id not in caches:
                caches[answer.task_id] = self._opened(answer.task_id)
            cache = caches[answer.task_id]
            for page in check.pages:
                if cache is not None:
                    self._add(page, cache)
                if page.url is not None and not page.stored_as and page.url in answer.captures:
                    captured.append((page, _describe_capture(page, answer.captures[page.url])))
        digests = list(dict.fromkeys(digest for _, digest in captured if digest))[:MAX_CAPTURES]
        bodies = self._stored_bodies(digests) if digests else {}
        for page, digest in captured:
            if digest in bodies:
                page.thumbnail = self._index_of(bodies[digest])

    def _opened(self, task_id: str) -> CacheFileSys | None:
        """Return the page cache of a task; None if there is none, or if it cannot be read."""
        if self._cache is None:
            return None
        folder = self._cache / task_id
        try:
            return CacheFileSys(folder) if folder.is_dir() else None
        except CacheIndexError as error:
            self._on_problem(f"screenshots of {folder.name} are left out: {error}")
            return None

    def _add(self, page: PageCheck, cache: CacheFileSys) -> None:
        kind = cache.has(page.url) if page.url else None
        if page.url is None or kind is None:
            return
        page.stored_as = kind
        if kind == "web":
            try:
                _, screenshot = cache.get_web(page.url)
            except KeyError:
                return
            if screenshot is not None:
                page.thumbnail = self._index_of(screenshot)

    def _index_of(self, screenshot: bytes) -> int | None:
        digest = hashlib.sha256(screenshot).hexdigest()
        if digest not in self._by_digest and not self._is_full:
            encoded = thumbnail(screenshot)
            if encoded is None:
                return None
            self._is_full = self._size + len(encoded) > MAX_THUMBNAIL_BYTES
            if not self._is_full:
                self._size += len(encoded)
                self._by_digest[digest] = len(self.encoded)
                self.encoded.append(encoded)
        return self._by_digest.get(digest)


def _describe_capture(page: PageCheck, capture: Mapping[str, Any]) -> str:
    """Say in the judgement how a page was captured. Return the digest of its first screenshot, "" if there is none."""
    bodies = as_object(capture.get("bodies"))
    if not bodies:
        page.stored_as = f"not captured: {_text(capture.get('outcome')).replace('_', ' ')}"
        return ""
    page.stored_as = "pdf" if "pdf" in bodies else "web"
    return _text(bodies.get("screenshot-0"))


def thumbnail(screenshot: bytes) -> str | None:
    """Return the top of a screenshot as data URI of a JPEG of at most 480 x 720 pixels; None if it is unreadable."""
    width, height = THUMBNAIL_SIZE
    made = io.BytesIO()
    try:
        with Image.open(io.BytesIO(screenshot)) as image:
            image.draft("RGB", THUMBNAIL_SIZE)  # decodes a JPEG at a smaller scale
            top = image.crop((0, 0, image.width, min(image.height, max(1, image.width * height // width))))
            size = (width, max(1, top.height * width // top.width))
            top.convert("RGB").resize(size, Image.Resampling.LANCZOS).save(
                made, "JPEG", quality=_THUMBNAIL_QUALITY, optimize=True
            )
    except UNREADABLE:
        return None
    return f"data:image/jpeg;base64,{base64.b64encode(made.getvalue()).decode()}"


def _render(agent: str, answers: Sequence[ReportedAnswer], metrics: Metrics, thumbnails: Sequence[str]) -> str:
    environment = Environment(
        loader=FileSystemLoader(_ASSETS), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"number": _shown_number, "share": _bar_width, "breakable": _breakable}
    runs = sorted({answer.run for answer in answers} | set(range(1, metrics["num_runs"] + 1)))
    by_task: dict[str, dict[int, ReportedAnswer]] = {task_id: {} for task_id in metrics["per_task"]}
    for answer in answers:
        by_task.setdefault(answer.task_id, {})[answer.run] = answer
    scores = [answer.score for answer in answers if answer.score is not None]
    checks = [check for answer in answers for check in answer.checks]
    macros: Any = environment.get_template("answer.html").make_module({"outcomes": _OUTCOMES})
    bodies: dict[str, Markup] = {answer.anchor: macros.answer_body(answer) for answer in answers}
    packed = sum(map(len, bodies.values())) > MAX_PLAIN_CHARS
    return environment.get_template("report.html").render(
        agent=agent,
        answers=answers,
        bodies={anchor: _packed(body) for anchor, body in bodies.items()} if packed else bodies,
        packed=packed,
        by_task=dict(sorted(by_task.items())),
        runs=runs,
        metrics=metrics,
        outcomes=_OUTCOMES,
        score_rows=_score_rows(scores, len(answers)),
        check_rows=_check_rows(checks),
        reason_rows=_reason_rows(checks),
        total_checks=len(checks),
        thumbnails=Markup(json.dumps(thumbnails)),  # noqa: S704 - base64
        nonce=secrets.token_urlsafe(18),
        made_at=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
        style=Markup((_ASSETS / "style.css").read_text("utf-8")),  # noqa: S704 - a file of ours
        script=Markup((_ASSETS / "script.js").read_text("utf-8")),  # noqa: S704 - a file of ours
    )


def _packed(body: str) -> str:
    """Return HTML compressed, as base64. The script of the report unpacks it when the answer is opened."""
    return base64.b64encode(gzip.compress(body.encode("utf-8", errors="replace"), mtime=0)).decode()


_Rows: TypeAlias = list[tuple[str, int, str]]
"""Rows of a bar chart: label, count, CSS class."""


def _score_rows(scores: Sequence[float], answers: int) -> _Rows:
    counts = Counter(next(label for label, contains, _ in _SCORE_BINS if contains(score)) for score in scores)
    rows = [(label, counts[label], look) for label, _, look in _SCORE_BINS]
    return rows if len(scores) == answers else [*rows, ("no result", answers - len(scores), "fill-not_judged")]


def _check_rows(checks: Sequence[Check]) -> _Rows:
    counts = Counter(check.outcome for check in checks)
    return [(label, counts[outcome], f"fill-{outcome}") for outcome, label in reversed(_OUTCOMES.items())]


def _reason_rows(checks: Sequence[Check]) -> _Rows:
    reasons = Counter((_failure(check), check.outcome) for check in checks if check.outcome in _OPEN_OUTCOMES)
    return [(reason, count, f"fill-{outcome}") for (reason, outcome), count in reasons.most_common(8)]


def _failure(check: Check) -> str:
    """Return why a check did not pass, for the chart."""
    if check.reason:
        return check.reason
    if check.error:
        return "invalid call"
    if PENALTY in check.tags:
        return PENALTY
    judged = [page for page in check.pages if page.passed is not None]
    notes = sorted({page.note for page in judged if page.note})
    return ", ".join(notes) or ("not supported" if judged else _OUTCOMES[check.outcome])


def _answer_html(text: str) -> Markup:
    return Markup(render_markdown(text, _edit_for_report))  # noqa: S704 - filtered with an allowlist


def _edit_for_report(tokens: Sequence[Token]) -> None:
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = "h5"  # below the headings of the report
        if token.type == "inline":
            token.children = list(linked(token.children or []))


def _judge(result: Mapping[str, Any]) -> str:
    judge = as_object(result.get("judge"))
    model = _text(judge.get("model") or result.get("judge_model"))
    effort, temperature = judge.get("reasoning_effort"), judge.get("temperature")
    parts = [
        model,
        f"effort {effort}" if effort else "",
        f"temperature {temperature}" if temperature is not None else "",
    ]
    return ", ".join(part for part in parts if part)


def _shown_number(value: float | None, digits: int = 2) -> str:
    return "\u2013" if value is None else f"{value:.{digits}f}"


def _breakable(name: str) -> Markup:
    """Return a name as HTML that may break after underscores."""
    return Markup("_<wbr>").join(name.split("_"))


def _bar_width(count: int, total: int) -> str:
    """Return the length of a bar in percent; a count above 0 is always visible."""
    return f"{max(0.7, 100 * count / total) if count else 0:.1f}%"


def _pretty(value: object) -> str:
    if isinstance(value, str):
        return strip_controls(value)
    return strip_controls(json.dumps(value, indent=2, ensure_ascii=False))


def _text(value: object) -> str:
    return "" if value is None else strip_controls(str(value))


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else []

"""Types of requests and responses: the JSON objects of the API. Generated from the OpenAPI document by `make client`. Do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class AcceptedArchiveOut(TypedDict):
    """The accepted submissions of an archive, one per agent and task."""

    submissions: list[AcceptedOut]


class AcceptedCheckOut(TypedDict):
    """Accepted check. ``id`` is the id of its job."""

    id: str
    status: JobStatus
    url: str
    job_url: str
    citations: int | None
    pages: int | None


class AcceptedOut(TypedDict):
    """An accepted submission."""

    id: str
    agent: str
    task_id: str
    jobs: list[JobRefOut]


class AcceptedRescoreOut(TypedDict):
    """Accepted rescore. ``answers`` is the number of answers, each of which becomes a job."""

    id: str
    url: str
    submission_url: str
    answers: int


class AcceptedRunOut(TypedDict):
    """Accepted run. ``id`` is the id of its job."""

    id: str
    suite: str
    status: JobStatus
    url: str
    job_url: str


class AcceptedSubmissionOut(TypedDict):
    """An accepted submission, with its webhook if the request had a ``webhook_url``."""

    id: str
    agent: str
    task_id: str
    jobs: list[JobRefOut]
    webhook: NotRequired[WebhookRefOut | None]


class AgentSummaryOut(TypedDict):
    """Averages of an agent, by run and by task."""

    agent: str
    agent_name: str
    num_tasks: int
    num_runs: int
    num_answers: int
    avg_score: float | None
    avg_score_std: float | None
    success_rate: float | None
    success_rate_std: float | None
    avg_answer_word_count: float | None
    avg_answer_word_count_std: float | None
    not_judged: NotJudgedOut
    nothing_applies: int
    bounds: AverageBoundsOut
    usage: UsageTotalsOut
    seconds: float
    judges: dict[str, int]
    unfinished: int
    statistics: StatisticsOut | None
    per_run: dict[str, RunAveragesOut]
    tasks: dict[str, TaskAveragesOut]
    without_result: list[WithoutResultOut]
    missing_answers: list[MissingAnswerOut]


class AgreementFiguresOut(TypedDict):
    """Agreement of the judge and people on overridden leaves. Positive is "passed"."""

    leaves: int
    left_out: int
    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int
    raw: FigureOut
    kappa: FigureOut
    ac1: FigureOut
    tpr: FigureOut
    tnr: FigureOut


class AgreementGroupOut(TypedDict):
    """Agreement for one task and one model; ``model`` is null for checks by code."""

    leaves: int
    left_out: int
    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int
    raw: FigureOut
    kappa: FigureOut
    ac1: FigureOut
    tpr: FigureOut
    tnr: FigureOut
    task_id: str
    model: str | None


class AgreementOut(TypedDict):
    """Agreement over all overridden leaves, and by task and model."""

    whole: AgreementFiguresOut
    items: list[AgreementGroupOut]


class AnswerEstimateOut(TypedDict):
    """Estimate of one answer."""

    calls: RangeOut
    input_tokens: RangeOut
    output_tokens: RangeOut
    usd: RangeOut | None
    answer: str
    basis: str


class AnswerIn(TypedDict):
    """One answer in a request: its ``text``, the JSON ``reply`` of a model provider, or a ``document``."""

    name: Any
    text: NotRequired[str | None]
    reply: NotRequired[Any]
    document: NotRequired[DocumentIn | None]
    evidence: NotRequired[Sequence[SuppliedPageIn]]


class AverageBoundsOut(TypedDict):
    """Averages with bounds."""

    score: ScoreOut | None
    success: ScoreOut | None
    pass_at_k: ScoreOut | None


class Blob(TypedDict):
    """Reference to a stored body: hash, size in bytes and media type."""

    sha256: str
    size: int
    media_type: str


class BoundsOut(TypedDict):
    """Bounds of a score. They are equal if nothing is unknown."""

    low: float
    high: float


By: TypeAlias = Literal["agent", "task_id", "model", "role", "day"]
"""Columns to group usage by."""

CaptureOutcome: TypeAlias = Literal[
    "ok",
    "partial",
    "http_error",
    "blocked",
    "captcha",
    "login_wall",
    "consent_wall",
    "soft_404",
    "empty",
    "dns_error",
    "connect_error",
    "tls_error",
    "timeout",
    "too_large",
    "unsupported",
    "egress_denied",
    "redirect_loop",
    "damaged",
    "crash",
    "corrupt",
    "not_stored",
    "forbidden",
]
"""Outcome of a capture attempt. Only ``ok`` and ``partial`` are evidence."""


class CapturedPage(TypedDict):
    """Capture that a source was judged on. Bodies are in the blob store, by SHA-256."""

    page_id: str
    url: str
    final_url: NotRequired[str | None]
    title: NotRequired[str]
    kind: NotRequired[str]
    outcome: str
    http_status: NotRequired[int | None]
    detail: NotRequired[str]
    captured_at: str
    sha256: NotRequired[str | None]
    bodies: NotRequired[dict[str, str]]
    source: NotRequired[str]


Cause: TypeAlias = Literal["answer", "page", "judge", "model", "gate", "vote"]
"""Cause of a flipped leaf: what differs between the two sides."""


class CheckBudget(TypedDict):
    """Budget of a check. ``limit_usd`` is null without a limit."""

    limit_usd: NotRequired[float | None]
    exhausted: NotRequired[bool]


class CheckDocument(TypedDict):
    """Finished citation check of one report."""

    schema_version: NotRequired[int]
    id: NotRequired[str | None]
    status: CheckStatus
    baseline: bool
    notice: NotRequired[str | None]
    model: str
    prompts: NotRequired[list[str]]
    created_at: str
    tool_version: str
    report: CheckedReport
    statements: list[Statement]
    sources: list[ReportSource]
    sentences: int
    counts: dict[str, int]
    figures: Figures
    not_judged: NotRequired[dict[str, int]]
    usage: NotRequired[CheckUsage]
    budget: NotRequired[CheckBudget]
    warnings: NotRequired[list[str]]


class CheckIn(TypedDict):
    """Report to check: its ``text``, the JSON ``reply`` of a model provider, a ``document``, or the ``url`` of a
    published page.
    """

    name: NotRequired[str]
    text: NotRequired[str | None]
    reply: NotRequired[Any]
    document: NotRequired[DocumentIn | None]
    url: NotRequired[str | None]
    model: NotRequired[str | Sequence[str] | None]
    budget_usd: NotRequired[float | None]
    priority: NotRequired[int]


class CheckOut(TypedDict):
    """One check, with its document when it is finished or stopped by its budget."""

    id: str
    model: str | None
    status: JobStatus
    stage: str | None
    attempts: int
    error: JobError | None
    result_id: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    name: str
    progress: ProgressOut
    score: ScoreOut | None
    job_url: str
    document: CheckDocument | None


CheckStatus: TypeAlias = Literal["complete", "incomplete", "stopped"]
"""Whether everything was judged."""


class CheckSummaryOut(TypedDict):
    """State of a check. ``document`` is only in the response of a single check."""

    id: str
    model: str | None
    status: JobStatus
    stage: str | None
    attempts: int
    error: JobError | None
    result_id: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    name: str
    progress: ProgressOut
    score: ScoreOut | None
    job_url: str


class CheckUsage(TypedDict):
    """Model requests of a check."""

    calls: NotRequired[int]
    cached_calls: NotRequired[int]
    input_tokens: NotRequired[int]
    output_tokens: NotRequired[int]
    usd: NotRequired[float | None]


class CheckedReport(TypedDict):
    """The report as it was checked."""

    name: str
    url: NotRequired[str | None]
    text: str
    sha256: str
    page_id: NotRequired[str | None]


class CitedUrlOut(TypedDict):
    """A cited URL and its state."""

    key: str
    url: str
    tasks: list[str]
    leaves: int
    open_leaves: int
    answers: int
    added: bool
    deleted: bool
    problem: bool
    flagged: bool
    flagged_by: str | None
    reviewed: bool
    reviewed_by: str | None
    needs_work: bool
    to_url: str | None
    page_id: str | None
    latest_id: str | None
    outcome: str | None
    title: str
    detail: str
    http_status: int | None
    source: str | None
    captured_at: str | None


ClaimOutcome: TypeAlias = Literal[
    "supported", "partly_supported", "contradicted", "not_supported", "unreadable", "dead", "not_judged"
]
"""Verdict on one claim and one source."""


class ClaimVerdict(TypedDict):
    """Verdict on a claim and one of its sources."""

    source: int
    outcome: ClaimOutcome
    reason: NotRequired[str | None]
    reasoning: NotRequired[str]
    quotes: NotRequired[list[PageQuote]]
    unsupported: NotRequired[list[Span]]
    closest: NotRequired[ClosestPassage | None]
    grounded: NotRequired[bool | None]
    signals: NotRequired[list[str]]
    model: NotRequired[str | None]
    prompt: NotRequired[str | None]
    baseline: NotRequired[bool]
    cached: NotRequired[bool]
    jury: NotRequired[list[MemberOutcome]]


class ClosestPassage(TypedDict):
    """Passage of a page that shares most words with a claim that the page does not support: ``[start:end]`` of its
    text. It shows a reader what the page says. The verdict does not rest on it.
    """

    text: str
    start: int
    end: int
    missing: list[str]


class ClosestPassageOut(TypedDict):
    """The passage of a page that is closest to a claim; null if the page shares no significant word with it."""

    passage: PassageOut | None


class ComparisonOut(TypedDict):
    """Comparison of each ``b`` with ``a`` over the tasks that both have."""

    level: float
    a: SideOut
    comparisons: list[SideComparisonOut]


class ComponentOut(TypedDict):
    """Leaf of the rubric. Its scores are null if it was not judged, or waits for such a leaf."""

    id: str
    description: str
    critical: bool
    weight: float
    outcome: str
    reason: str | None
    score: float | None
    score_strict: float | None


class CostOut(TypedDict):
    """Model calls, tokens and US dollars of the verification. Cached calls cost nothing."""

    calls: int
    cached_calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None


Counting: TypeAlias = Literal["set", "multiset"]
"""Token counting: each distinct token once, or every occurrence."""


class DeletedOut(TypedDict):
    """Numbers of deleted objects."""

    jobs: int
    results: int
    answers: int


class DeliveryOut(TypedDict):
    """Delivery of one event. The receiver gets `id` as the header `webhook-id`."""

    id: str
    event: str
    job_id: str | None
    state: Literal["pending", "delivered", "failed"]
    attempts: int
    status_code: int | None
    error: str | None
    created_at: str
    next_at: str | None
    delivered_at: str | None


class DependentResult(TypedDict):
    """Newest result of an answer with leaves that cite a URL. ``calls`` and ``usd`` are the calls and cost of judging
    those leaves last time (``usd`` None: unknown).
    """

    result_id: str
    job_id: str
    agent: str
    task_id: str
    answer_name: str
    leaves: int
    open_leaves: int
    calls: int
    usd: float | None
    created_at: str


class DependentsOut(TypedDict):
    """Results that depend on pages: totals, and the first answers."""

    answers: int
    leaves: int
    open_leaves: int
    calls: int
    usd: float | None
    items: list[DependentResult]


class DocumentIn(TypedDict):
    """Document that becomes Markdown with its links and footnotes. The suffix of ``name`` says what it is."""

    name: str
    content: str


class EstimateOut(TypedDict):
    """Estimate of each answer, and the total."""

    model: str
    items: list[AnswerEstimateOut]
    total: TotalEstimateOut
    prices_as_of: str


class Figure(TypedDict):
    """Share of a population. ``value`` is ``count / judged``. ``low`` and ``high`` are the shares if everything that
    was not judged counted against it or for it.
    """

    value: float | None
    count: int
    judged: int
    not_judged: NotRequired[int]
    low: NotRequired[float]
    high: NotRequired[float]
    interval: NotRequired[FigureInterval | None]
    of: NotRequired[str]
    definition: str
    reference: NotRequired[str | None]


class FigureComparisonOut(TypedDict):
    """One figure on both sides. The difference is b - a."""

    a: ScoreOut | None
    b: ScoreOut | None
    tasks: int
    certain: int
    difference: float | None
    low: float | None
    high: float | None
    student_t: Interval | None
    bootstrap: Interval | None
    whatever_is_open: Interval | None
    sign_flip: SignFlipOut | None
    smallest_detectable_difference: float | None
    verdict: Literal["b_higher", "b_lower", "not_told_apart", "too_few_tasks", "nothing_to_compare"]
    warnings: list[str]


class FigureInterval(TypedDict):
    """Confidence interval at 95 %."""

    low: float
    high: float
    method: str


class FigureOut(TypedDict):
    """A figure with its 95 % interval."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str
    reason: str | None


class Figures(TypedDict):
    """Figures of a check. The names of the first four contain the publication that defines them."""

    citation_precision_liu2023: Figure
    citation_recall_liu2023: Figure
    citation_precision_alce: Figure
    citation_recall_alce: Figure
    unreadable: Figure
    dead: Figure
    fabricated: Figure
    uncited: Figure


class Flip(TypedDict):
    """Leaf whose outcome differs. An outcome is null if the tree of that side has no such leaf. A penalty ``applies``
    or is ``avoided``.
    """

    task_id: str
    answer_name: str
    leaf: str
    description: str
    before: str | None
    after: str | None
    causes: list[FlipCause]
    result_before: str
    result_after: str


class FlipCause(TypedDict):
    """Cause of a flip: something that differs between the two sides."""

    cause: Cause
    detail: str


class FoundOut(TypedDict):
    """Something that was found."""

    kind: str
    id: str
    label: str
    detail: str


class HeadlineFigureOut(TypedDict):
    """A headline figure over tasks, with intervals."""

    value: NotRequired[float | None]
    low: float
    high: float
    tasks: int
    interval: Interval | None
    student_t: Interval | None
    bootstrap: Interval | None


class HealthOut(TypedDict):
    """Liveness of the process. ``sandbox``: whether pages are opened only with the browser sandbox."""

    status: NotRequired[Literal["alive"]]
    sandbox: Literal["on", "off", "unknown"]


class Interval(TypedDict):
    """Confidence interval at ``LEVEL``. ``method`` describes how it was computed."""

    low: float
    high: float
    method: str


class JobCountsOut(TypedDict):
    """Number of jobs by status."""

    queued: int
    running: int
    succeeded: int
    failed: int
    cancelled: int


class JobError(TypedDict):
    """Error of a failed or paused job. ``traceback`` is set only for errors in a task file."""

    code: str
    detail: str
    traceback: NotRequired[str | None]


JobKind: TypeAlias = Literal["answer", "suite", "check"]
"""Kind of work of a job."""


class JobOut(TypedDict):
    """Current state of a job."""

    id: str
    model: str | None
    status: JobStatus
    stage: str | None
    attempts: int
    error: JobError | None
    result_id: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    kind: JobKind
    submission_id: str
    agent: str
    task_id: str
    answer: str
    run: str | None
    progress: ProgressOut


class JobRefOut(TypedDict):
    """Reference to a job of a submission."""

    id: str
    answer: str
    status: JobStatus
    url: str


JobStatus: TypeAlias = Literal["queued", "running", "succeeded", "failed", "cancelled"]
"""Status of a job, as in the HTTP API."""


JsonSchemaOut = TypedDict("JsonSchemaOut", {"$schema": "str", "type": "str"})
"""A JSON Schema."""


class LeaderboardRowOut(TypedDict):
    """Averages of an agent. ``pass_at_<answers per task>`` is a further field."""

    agent: str
    agent_name: str
    num_tasks: int
    num_runs: int
    num_answers: int
    avg_score: float | None
    avg_score_std: float | None
    success_rate: float | None
    success_rate_std: float | None
    avg_answer_word_count: float | None
    avg_answer_word_count_std: float | None
    not_judged: NotJudgedOut
    nothing_applies: int
    bounds: AverageBoundsOut
    usage: UsageTotalsOut
    seconds: float
    judges: dict[str, int]
    unfinished: int
    statistics: StatisticsOut | None


class LintFindingOut(TypedDict):
    """One finding of the rubric linter: the rule, the id of the node, and a message that states the problem and how to
    fix it.
    """

    code: str
    node_id: str
    message: str


class ListedJobOut(TypedDict):
    """A job in a list, with its score."""

    id: str
    model: str | None
    status: JobStatus
    stage: str | None
    attempts: int
    error: JobError | None
    result_id: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    kind: JobKind
    submission_id: str
    agent: str
    task_id: str
    answer: str
    run: str | None
    progress: ProgressOut
    score: ScoreOut | None


MaskReason: TypeAlias = Literal[
    "deadline",
    "budget",
    "model_unavailable",
    "model_output",
    "pages_unreadable",
    "browser_unavailable",
    "storage_unavailable",
    "judge_failed",
    "nothing_applies",
    "not_judged",
]
"""Why a reward is masked."""


class MeanScoreOut(TypedDict):
    """Means of one run of an agent by one judge over the tasks that all listed runs have; null without such a task."""

    agent: str
    run: str | None
    judge: str
    tasks: int
    score: ScoreOut | None
    interval: Interval | None
    success: ScoreOut | None


class MemberOutcome(TypedDict):
    """Verdict of one member of a jury on a claim and one of its sources."""

    model: str
    outcome: ClaimOutcome
    reason: NotRequired[str | None]
    reasoning: NotRequired[str]


class MessageIn(TypedDict):
    """Message of a conversation. Other fields than these, such as tool calls, are ignored."""

    role: str
    content: NotRequired[str | Sequence[Mapping[str, Any]] | None]


MetadataValue: TypeAlias = "Any"
"""Any JSON value. Neither strings nor field names contain NUL."""

Metric: TypeAlias = Literal["mindact", "action"]
"""Criterion for a successful step."""


class Mind2WebRunIn(TypedDict):
    """Options of a Mind2Web run."""

    data: str
    split: NotRequired[str | None]
    seed: NotRequired[int]
    run: NotRequired[str | None]
    model: NotRequired[str | None]
    predictions: NotRequired[str | None]
    max_examples: NotRequired[int | None]
    priority: NotRequired[int]
    budget_usd: NotRequired[float | None]
    scores: NotRequired[str | None]
    prompt_template: NotRequired[str | None]
    protocol: NotRequired[Protocol]
    top_k: NotRequired[int]
    max_html_chars: NotRequired[int]
    metric: NotRequired[Metric | None]
    no_positive: NotRequired[NoPositive | None]
    temperature: NotRequired[float]
    max_tokens: NotRequired[int | None]
    shuffle: NotRequired[Shuffle]
    compat_trailing: NotRequired[bool]


class MissingAnswerOut(TypedDict):
    """Answer that a task lacks, although other tasks have one of the same name."""

    task_id: str
    answer_name: str


class MultimodalRunIn(TypedDict):
    """Options of a Multimodal-Mind2Web~ run. ``seed`` only affects the resampling of the intervals."""

    data: str
    split: NotRequired[str | None]
    seed: NotRequired[int]
    run: NotRequired[str | None]
    model: NotRequired[str | None]
    predictions: NotRequired[str | None]
    max_examples: NotRequired[int | None]
    priority: NotRequired[int]
    budget_usd: NotRequired[float | None]
    tokens: NotRequired[Counting]


class NewWebhookOut(TypedDict):
    """A new webhook with the key of its signatures, which is shown only once."""

    id: str
    url: str
    description: str
    submission_id: str | None
    created_at: str
    disabled_at: str | None
    disabled_reason: str | None
    secret: str


NoPositive: TypeAlias = Literal["zero", "skip"]
"""Policy for steps without a correct element within top k, and for those that have no other element (guide)."""


class NotJudgedOut(TypedDict):
    """Counts of what was not judged."""

    answers: int
    incomplete: int
    without_result: int
    leaves: int


class NotJudgedShareOut(TypedDict):
    """Number and share of answers that were not judged completely."""

    answers: int
    share: float


class OverrideIn(TypedDict):
    """A person's decision on one leaf, which confirms or contradicts the verdict."""

    leaf: str
    outcome: Literal["passed", "failed"]
    reason: str
    by: str


class OverrideOut(TypedDict):
    """An override, or the withdrawal of one."""

    id: str
    result_id: str
    leaf: str
    outcome: Literal["passed", "failed"] | None
    verdict: str
    model: str | None
    reason: str
    by: str
    key_owner: str
    withdraws: str | None
    in_force: bool
    created_at: str


class PageChangeIn(TypedDict):
    """A change to a cited URL."""

    action: Literal["add", "edit", "delete", "flag", "unflag", "review", "unreview"]
    url: str
    to: NotRequired[str | None]
    task_id: NotRequired[str | None]
    reason: NotRequired[str]
    by: NotRequired[str]


class PageChangeOut(TypedDict):
    """A stored page change."""

    id: str
    action: str
    url: str
    to_url: str | None
    task_id: str | None
    page_id: str | None
    reason: str
    by: str
    key_owner: str
    created_at: str
    undoes: str | None
    undone_by: str | None


class PageOut(TypedDict):
    """A capture: one attempt to load a URL."""

    id: str
    url: str
    final_url: str | None
    outcome: str
    problem: bool
    detail: str
    http_status: int | None
    kind: str
    title: str
    captured_at: str
    duration_s: float
    backend: str
    chain: list[str]
    headers: dict[str, str]
    versions: dict[str, str]
    hidden_words: int
    gone: bool
    source: str
    provenance: dict[str, str]
    alias_of: str | None
    owner: str | None
    blobs: dict[str, Blob]


class PageQuote(TypedDict):
    """Passage of a page that code found: ``[start:end]`` of its text, or 0 and 0 if ``origin`` is ``image``."""

    text: str
    start: int
    end: int
    origin: NotRequired[str]


class PagesOut(TypedDict):
    """Number of pages that are cited or were read, and of those without usable content."""

    total: int
    unreadable: int


class PassEstimateOut(TypedDict):
    """Estimate of pass@k or pass^k for one k."""

    value: NotRequired[float | None]
    low: float
    high: float
    k: int
    tasks: int
    interval: Interval | None


class PassageOut(TypedDict):
    """Part of a page's text: ``text`` from offset ``start`` to ``end``."""

    start: int
    end: int
    text: str
    score: float


class PauseIn(TypedDict):
    """Reason for a pause. The error of every waiting job contains it."""

    reason: str


class ProblemErrorOut(TypedDict):
    """Error of one input field."""

    path: str
    message: str


class ProblemOut(TypedDict):
    """Error response (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: NotRequired[str | None]
    errors: NotRequired[list[ProblemErrorOut] | None]


class ProgressOut(TypedDict):
    """Progress of a job."""

    pages_done: int
    pages_total: int
    leaves_done: int
    leaves_total: int


Protocol: TypeAlias = Literal["tournament", "guide"]
"""How a model is asked about a step."""


class ProviderListOut(TypedDict):
    """All providers, and warnings about the default model."""

    items: list[ProviderOut]
    next_cursor: NotRequired[str | None]
    warnings: NotRequired[list[str]]


class ProviderOut(TypedDict):
    """A provider and, if it is paused, the details of the pause."""

    provider: str
    status: Literal["in_use", "paused"]
    reason: NotRequired[str | None]
    paused_by: NotRequired[str | None]
    paused_at: NotRequired[str | None]


class RangeOut(TypedDict):
    """Lowest and highest value."""

    low: float
    high: float


class ReadinessCheckOut(TypedDict):
    """One readiness check. ``detail`` is the reason if it failed."""

    name: str
    ok: bool
    detail: str


class ReadinessOut(TypedDict):
    """Readiness for work, with the result of each check."""

    ready: bool
    checks: list[ReadinessCheckOut]


class ReportCitation(TypedDict):
    """Citation mark of a statement and one source."""

    mark: str
    start: int
    end: int
    source: int | None
    page: NotRequired[str]
    supports: bool | None
    contributes: bool | None


class ReportClaim(TypedDict):
    """Claim that a statement was split into. ``spans`` are its words in the report, in text order."""

    text: str
    spans: list[Span]
    verdicts: NotRequired[list[ClaimVerdict]]


class ReportSource(TypedDict):
    """Source of the report: entry of a reference list, or other URL. All of them are opened."""

    url: str | None
    title: NotRequired[str]
    state: SourceState
    reason: NotRequired[str | None]
    detail: NotRequired[str]
    marks: NotRequired[int]
    page: NotRequired[CapturedPage | None]
    archived_url: NotRequired[str | None]


class RescoreIn(TypedDict):
    """Which answers to rescore: those of a task, of an agent, or of both; or those of ``jobs``."""

    task_id: NotRequired[str | None]
    agent: NotRequired[str | None]
    jobs: NotRequired[Sequence[str] | None]
    model: NotRequired[str | Sequence[str] | None]
    capture: NotRequired[bool]
    priority: NotRequired[int]
    budget_usd: NotRequired[float | None]


class RescoreOut(TypedDict):
    """Rescore with old and new scores side by side."""

    id: str
    agent: str | None
    task_id: str | None
    model: str | None
    created_at: str
    budget_usd: float | None
    done: bool
    jobs: dict[str, int]
    spent_usd: float
    stored_pages: bool
    answers: list[dict[str, Any]]
    agents: list[dict[str, Any]]
    agreement: dict[str, Any]
    flips: list[dict[str, Any]]
    flipped: int
    usage: dict[str, Any]


class RescoreSummaryOut(TypedDict):
    """State of a rescore. ``done``: all jobs have ended. ``agent`` and ``task_id`` are null if there are several."""

    id: str
    agent: str | None
    task_id: str | None
    model: str | None
    created_at: str
    budget_usd: float | None
    done: bool
    jobs: dict[str, int]


class Result(TypedDict):
    """The result of judging one answer, with everything needed to check it. New versions may add fields, but do not
    remove or rename any.
    """

    schema_version: int
    id: str | None
    task_id: str
    status: Literal["complete", "incomplete"]
    score: Result_score
    score_strict: Result_score
    score_unclipped: NotRequired[Result_score_unclipped]
    forbidden_sources: NotRequired[list[dict[str, Any]]]
    evidence: NotRequired[dict[str, Any]]
    extraction_error: NotRequired[str | None]
    final_score: float
    agent_name: str
    answer_name: str
    judge_model: str | None
    extract_model: str | None
    eval_breakdown: list[dict[str, Any]]
    tree_statistics: NotRequired[dict[str, Any]]
    judge: dict[str, Any]
    script: dict[str, Any]
    eval_script_sha256: str | None
    parameters: NotRequired[dict[str, dict[str, Any]]]
    judge_usage: NotRequired[dict[str, Any]]
    evaluator_config: NotRequired[dict[str, Any]]
    scoring_version: NotRequired[int]
    eval_date: NotRequired[str | None]
    warnings: NotRequired[list[str]]
    model: str
    prompts: list[str]
    answer_sha256: str
    tool_version: str
    usage: Result_usage
    calls: NotRequired[dict[str, Any] | None]
    timing: dict[str, float | str | None]
    page_cache: NotRequired[dict[str, Any]]
    pages: list[dict[str, Any]]
    usage_by: NotRequired[list[dict[str, Any]]]
    asked_in: NotRequired[str | None]
    rejudged: NotRequired[Result_rejudged | None]
    overrides: NotRequired[list[Result_override]]
    with_overrides: NotRequired[Result_with_overrides | None]


class ResultOrigin(TypedDict):
    """Result without its body. ``run`` is the label that the owner gave to the submission."""

    result_id: str
    job_id: str
    submission_id: str
    agent: str
    task_id: str
    answer_name: str
    answer_sha256: str
    run: str | None
    model: str | None
    status: str
    final_score: float
    score: Score | None
    created_at: str


Result_cause: TypeAlias = Literal["answer", "page", "script", "prompt", "model", "new", "not_kept"]
"""new: the earlier result has no verdict; not_kept: nothing changed, but the replies were no longer in the reply cache"""


class Result_evidence(TypedDict):
    """Object Result_evidence."""

    claim: str
    sources: list[str]
    checks: list[dict[str, Any]]
    skipped_because: NotRequired[str]
    error: NotRequired[str]


class Result_leaf(TypedDict):
    """Object Result_leaf."""

    outcome: Literal["passed", "failed", "skipped", "not_judged", "undecided"]
    reason: str | None
    reasoning: str
    sources: list[str] | None
    votes: list[dict[str, Any]]
    provenance: NotRequired[Literal["supplied"]]
    penalized: NotRequired[bool]
    jury: NotRequired[list[dict[str, Any]]]
    quotes: list[dict[str, Any]]
    grounding: NotRequired[Literal["text", "image"] | None]
    blocked_by: str | None
    page_digests: NotRequired[list[str]]
    rejudged: NotRequired[dict[str, Any] | None]


class Result_node(TypedDict):
    """Object Result_node."""

    id: str
    desc: str
    critical: bool
    score: float
    status: Literal["passed", "failed", "partial", "skipped", "initialized"]
    strategy: Literal["parallel", "sequential"]
    children: list[Result_node]
    weight: NotRequired[float]
    evidence: NotRequired[Result_evidence | None]


class Result_override(TypedDict):
    """Object Result_override."""

    id: str
    result_id: str
    leaf: str
    outcome: Literal["passed", "failed"] | None
    verdict: Literal["passed", "failed", "skipped", "not_judged", "undecided"]
    model: str | None
    reason: str
    by: str
    key_owner: str
    withdraws: str | None
    in_force: bool
    created_at: str


class Result_rejudged(TypedDict):
    """Object Result_rejudged."""

    of: str | None
    reused: int
    again: int
    because: dict[str, int]


class Result_score(TypedDict):
    """Object Result_score."""

    value: float | None
    low: float | None
    high: float | None
    reason: NotRequired[Literal["nothing_applies"]]


class Result_score_unclipped(TypedDict):
    """Only if the rubric has penalties: the score before it is clipped to 0..1"""

    value: float | None
    low: float
    high: float


class Result_usage(TypedDict):
    """Object Result_usage."""

    calls: int
    cached_calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None


class Result_with_overrides(TypedDict):
    """Object Result_with_overrides."""

    score: Result_score
    score_strict: Result_score
    score_unclipped: NotRequired[Result_score_unclipped]
    final_score: float
    leaves: int


class ReviewOut(TypedDict):
    """An override with the answer that it refers to."""

    id: str
    result_id: str
    leaf: str
    outcome: Literal["passed", "failed"] | None
    verdict: str
    model: str | None
    reason: str
    by: str
    key_owner: str
    withdraws: str | None
    in_force: bool
    created_at: str
    agent: str
    task_id: str
    answer_name: str


class RewardOut(TypedDict):
    """Reward in [0, 1]; null with ``mask: true`` if the verdict is not reliable."""

    reward: float | None
    mask: bool
    mask_reason: MaskReason | None
    mask_detail: str | None
    score: ScoreKind
    bounds: BoundsOut
    scores: dict[str, ScoreOut]
    components: list[ComponentOut]
    pages: PagesOut | None
    cost: CostOut
    timing: TimingOut
    task_id: str
    judge_sha256: str | None
    answer_sha256: str
    model: str


class RewardsOut(TypedDict):
    """Rewards of a batch, in the order of its items."""

    items: list[RewardOut]


class RunAveragesOut(TypedDict):
    """Averages of one run."""

    num_tasks: int
    avg_score: float
    success_rate: float
    avg_word_count: float


class RunComparisonOut(TypedDict):
    """Comparison of two runs over the steps that were scored in both."""

    a: str
    b: str
    settings: list[dict[str, Any]]
    steps: int
    tasks: int
    only_a: int
    only_b: int
    not_scored: int
    micro: dict[str, Any] | None
    macro: dict[str, Any] | None
    task_success: dict[str, Any] | None
    changes: dict[str, Any]


class RunMeansOut(TypedDict):
    """Means over the steps scored so far (micro), null before the first one. The result has all figures."""

    element_acc: float | None
    action_f1: float | None
    step_acc: float | None


class RunOut(TypedDict):
    """Current state of a run."""

    id: str
    model: str | None
    status: JobStatus
    stage: str | None
    attempts: int
    error: JobError | None
    result_id: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    suite: str
    order: dict[str, Any]
    progress: RunProgressOut
    means: RunMeansOut
    job_url: str


class RunProgressOut(TypedDict):
    """Progress of a run. ``steps_total`` is null until the data were read."""

    steps_done: int
    steps_total: int | None
    scored: int
    not_judged: int


class Score(TypedDict):
    """Score from 0 to 1 with its bounds. ``value`` is None while unknown leaves could change it."""

    value: float | None
    low: float
    high: float


ScoreKind: TypeAlias = Literal["compatible", "strict"]
"""Score that becomes the reward."""


class ScoreOut(TypedDict):
    """A score. ``value`` is null while leaves that were not judged could change it; then the bounds differ."""

    value: NotRequired[float | None]
    low: float
    high: float


class ScoredAnswerOut(TypedDict):
    """Newest result of an answer, without its tree."""

    result_id: str
    job_id: str
    agent: str
    answer_name: str
    run: str | None
    status: str
    score: ScoreOut | None
    created_at: str


Shuffle: TypeAlias = Literal["step", "stream"]
"""How the seed determines the order of play. Both are reproducible, even if a run is interrupted and resumed."""


class SideComparisonOut(TypedDict):
    """Comparison of one side with ``a``."""

    b: SideOut
    score: FigureComparisonOut
    success: FigureComparisonOut
    tasks: list[TaskComparisonOut]
    only_a: list[str]
    only_b: list[str]
    flipped: int
    flips_left_out: int


class SideOut(TypedDict):
    """One side of a comparison: an agent, a run or a result."""

    name: str
    tasks: int
    answers: int
    not_judged: int
    judges: dict[str, int]


class SignFlipOut(TypedDict):
    """Sign-flip test of the task differences."""

    p: float
    p_holm: float
    exact: bool
    patterns: int
    tasks_that_differ: int
    smallest_p: float
    method: str


SourceState: TypeAlias = Literal["readable", "unreadable", "dead", "fabricated", "no_url", "truncated", "not_checked"]
"""State of a source."""


class Span(TypedDict):
    """Part of the report: ``report.text[start:end]``."""

    start: int
    end: int


class Statement(TypedDict):
    """Sentence, heading or table row that has a citation or states a fact."""

    start: int
    end: int
    text: str
    kind: StatementKind
    factual: bool
    outcome: StatementOutcome
    reason: NotRequired[str | None]
    unsupported: NotRequired[list[Span]]
    claims: NotRequired[list[ReportClaim]]
    citations: NotRequired[list[ReportCitation]]


StatementKind: TypeAlias = Literal["sentence", "heading", "table_row"]
"""Form of a statement in the report."""

StatementOutcome: TypeAlias = Literal[
    "supported", "partly_supported", "contradicted", "not_supported", "unreadable", "dead", "uncited", "not_judged"
]
"""Outcome of a statement of the report."""


class StatisticsOut(TypedDict):
    """Headline figures with bounds and intervals."""

    level: float
    tasks: int
    answers: int
    not_judged: NotJudgedShareOut
    score: HeadlineFigureOut
    success: HeadlineFigureOut
    pass_at_k: list[PassEstimateOut]
    pass_hat_k: list[PassEstimateOut]
    smallest_detectable_difference: float | None
    warnings: list[str]


class StepOut(TypedDict):
    """Step with all details. ``step`` is its entry in the predictions file; ``page`` is read from the data again."""

    step: dict[str, Any]
    page: str | None
    page_problem: NotRequired[str | None]
    screenshot: NotRequired[str | None]
    boxes: NotRequired[list[dict[str, Any]]]


StepStatus: TypeAlias = Literal["scored", "skipped", "not_judged"]
"""Status of a step."""


class StepSummaryOut(TypedDict):
    """Step in a list."""

    position: int
    id: str
    task_id: str
    website: str
    domain: str
    status: str
    reason: str | None
    element_acc: float | None
    action_f1: float | None
    step_acc: float | None


class SubmissionChangeIn(TypedDict):
    """Change of a submission."""

    budget_usd: float | None


class SubmissionIn(TypedDict):
    """Answers of one agent to one task."""

    agent: str
    task_id: str
    answers: Sequence[AnswerIn]
    model: NotRequired[str | Sequence[str] | None]
    run: NotRequired[str | None]
    metadata: NotRequired[Mapping[str, MetadataValue] | None]
    priority: NotRequired[int]
    budget_usd: NotRequired[float | None]
    webhook_url: NotRequired[str | None]
    evidence_policy: NotRequired[Literal["captured", "fallback", "supplied"] | None]


class SubmissionOut(TypedDict):
    """A submission with the current status of its jobs."""

    id: str
    agent: str
    task_id: str
    jobs: list[JobRefOut]
    model: str | None
    run: str | None
    metadata: dict[str, Any]
    created_at: str
    priority: int
    budget_usd: float | None
    spent_usd: float


class SubmissionSummaryOut(TypedDict):
    """A submission in a list."""

    id: str
    agent: str
    task_id: str
    model: str | None
    run: str | None
    created_at: str
    priority: int
    budget_usd: float | None
    job_counts: JobCountsOut
    jobs: list[JobRefOut] | None
    metadata: dict[str, Any] | None


SuiteName: TypeAlias = Literal["mind2web", "mm-mind2web"]
"""Suites with runs."""


class SuppliedPageIn(TypedDict):
    """A page that the agent has read, with one content. PDFs and images are Base64."""

    url: str
    title: NotRequired[str | None]
    text: NotRequired[str | None]
    html: NotRequired[str | None]
    mhtml: NotRequired[str | None]
    pdf: NotRequired[str | None]
    image: NotRequired[str | None]
    retrieved_at: NotRequired[str | None]


class TaskAnswerOut(TypedDict):
    """Score of one answer."""

    answer_name: str
    score: float
    success: bool
    word_count: int


TaskAveragesOut = TypedDict(
    "TaskAveragesOut", {"answers": "list[TaskAnswerOut]", "best_score": "float", "avg_score": "float", "pass": "bool"}
)
"""Averages of one task."""


class TaskComparisonOut(TypedDict):
    """One task on both sides, with the leaves that flipped."""

    task_id: str
    a: ScoreOut
    b: ScoreOut
    difference: ScoreOut
    flipped: int
    flips: list[Flip]


class TaskFileOut(TypedDict):
    """YAML file of a task with its errors and its rubric. ``nodes`` is empty if it is not YAML."""

    task_id: str
    file: str
    sha256: str
    text: str
    problems: list[TaskProblemOut]
    nodes: list[TaskNodeOut]


class TaskNodeOut(TypedDict):
    """Node of the rubric, before its children. ``gated``: its group makes it critical. ``sources`` is the list of a
    ``for_each``, or the sources of a claim.
    """

    path: str
    id: str
    kind: str
    depth: int
    line: int
    values: dict[str, str | bool | int | float]
    sources: str
    gated: bool
    children: int


class TaskOut(TypedDict):
    """A task. ``error``: why its file cannot be loaded."""

    task_id: str
    status: str
    kind: str | None
    name: str | None
    version: str | None
    sha256: str | None
    description: str
    file: str | None
    error: NotRequired[str | None]


class TaskProblemOut(TypedDict):
    """Error in a task file. ``line`` and ``column`` start at 1."""

    line: int
    column: int
    message: str


class TaskScoreOut(TypedDict):
    """Scores of one run of an agent at a task by one judge, over the newest result of each answer."""

    task_id: str
    agent: str
    run: str | None
    score: ScoreOut
    success: ScoreOut
    answers: int
    incomplete: int
    judge: str
    result_id: str
    last_judged_at: str


class TaskUrlCounts(TypedDict):
    """Counts of a task's cited URLs. ``leaves_waiting``: number of leaves that cite a URL that needs work."""

    task_id: str
    urls: int
    problems: int
    flagged: int
    reviewed: int
    needs_work: int
    leaves_waiting: int


class TimingOut(TypedDict):
    """Seconds. ``model_s`` is the time in which at least one model request was running."""

    total_s: float
    queued_s: float
    capture_s: float
    model_s: float


class TotalEstimateOut(TypedDict):
    """Estimated calls, tokens and cost. Cached replies are not subtracted."""

    calls: RangeOut
    input_tokens: RangeOut
    output_tokens: RangeOut
    usd: RangeOut | None


class UsageListOut(TypedDict):
    """Usage by group, highest cost first."""

    items: list[UsageOut]
    total: UsageOut
    prices_as_of: str


class UsageOut(TypedDict):
    """Sums of one group."""

    agent: NotRequired[str | None]
    task_id: NotRequired[str | None]
    model: NotRequired[str | None]
    role: NotRequired[str | None]
    day: NotRequired[str | None]
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None
    usd_known: float
    unpriced_calls: int


class UsageTotalsOut(TypedDict):
    """Model calls, tokens and cost."""

    calls: int
    cached_calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None


class VerifyIn(TypedDict):
    """One answer to verify, or ``items`` with up to 1,000 of them."""

    task_id: NotRequired[str | None]
    rubric: NotRequired[Mapping[str, Any] | None]
    answer: NotRequired[str | None]
    messages: NotRequired[Sequence[MessageIn] | None]
    model: NotRequired[str | Sequence[str] | None]
    score: NotRequired[ScoreKind]
    max_unreadable_share: NotRequired[float]
    share_claims: NotRequired[bool]
    budget_usd: NotRequired[float | None]
    items: NotRequired[Sequence[VerifyItemIn] | None]
    deadline_s: NotRequired[float]


class VerifyItemIn(TypedDict):
    """Answer, and the task or the rubric to verify it with."""

    task_id: NotRequired[str | None]
    rubric: NotRequired[Mapping[str, Any] | None]
    answer: NotRequired[str | None]
    messages: NotRequired[Sequence[MessageIn] | None]
    model: NotRequired[str | Sequence[str] | None]
    score: NotRequired[ScoreKind]
    max_unreadable_share: NotRequired[float]
    share_claims: NotRequired[bool]
    budget_usd: NotRequired[float | None]


class WebhookIn(TypedDict):
    """A webhook for all jobs of the owner, or for those of one submission."""

    url: str
    description: NotRequired[str]
    submission_id: NotRequired[str | None]


class WebhookOut(TypedDict):
    """A webhook. It is called when a job ends: `job.succeeded`, `job.failed` or `job.cancelled`."""

    id: str
    url: str
    description: str
    submission_id: str | None
    created_at: str
    disabled_at: str | None
    disabled_reason: str | None


class WebhookRefOut(TypedDict):
    """The webhook of a submission."""

    id: str
    url: str
    secret: NotRequired[str | None]


class WithdrawalIn(TypedDict):
    """Reason for withdrawing an override."""

    reason: str
    by: str


class WithoutResultOut(TypedDict):
    """An answer whose job failed."""

    task_id: str
    answer_name: str
    error_code: str | None

"""Drafts of a task: a model writes a task file, code checks it, and the model repairs what the checks found.

Question, example answer and drafts are untrusted. The model sees them in blocks, and a draft is only parsed and judged.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

from pydantic import BaseModel, Field

from app.engine.judge_trials import TrialFailed, model_test
from app.engine.runtime import Runtime
from app.engine.text_judging import text_judge
from cache.errors import CacheError
from judges.analysis.task_tests.leaves import EMPTY_ANSWER, ObservedRun, empty_answer_finding, observed_run
from judges.errors import JudgeError, LLMError
from judges.llm.client import LLMRequest
from judges.llm.observed import ObservedLLM, UsageMeter
from judges.llm.parameters import RequestParameters
from judges.llm.providers import parse_model
from judges.loader import load_judge
from judges.prompting.blocks import BlockBuilder, neutralise
from judges.prompting.rendering import render_texts
from judges.yaml_tasks.compiler import CompiledTask, compile_task
from judges.yaml_tasks.document import InvalidTask, Problem, read_document
from rubrics.lint import LintRule, lint
from rubrics.tree_json import BAD_STATES
from rubrics.verdict import Outcome

MAX_DRAFT_CHARS: Final = 100_000
"""Longer drafts are not parsed."""
MAX_COMMENTS: Final = 50
MAX_COMMENT_CHARS: Final = 400
_FENCED = re.compile(r"\s*```\w*\n(.*?)\n?```\s*", re.DOTALL)


class DraftReply(BaseModel):
    """Reply to the prompt ``draft_task``."""

    task_yaml: str
    doubts: list[str] = Field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftInputs:
    """What is drafted. ``model`` is ``provider/model``, ``rounds`` the maximum number of drafts."""

    task_id: str
    question: str
    example: str | None
    model: str
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One draft with what remains doubtful.

    ``problems`` are findings that the model can repair. ``doubts`` are remarks of the model. ``faults`` are the reasons
    why something was not judged or tested. Problems and faults of the whole file are located in line 1.
    """

    text: str
    is_valid: bool
    problems: tuple[Problem, ...] = ()
    doubts: tuple[str, ...] = ()
    faults: tuple[Problem, ...] = ()

    def commented(self, model: str, stopped: str | None = None) -> str:
        """Return the text with comments: each problem and fault above its line, and the rest at the top."""
        found = [*self.problems, *self.faults][:MAX_COMMENTS]
        placed = [each for each in found if each.line > 1]
        if self.is_valid and not _keeps_values(self.text, placed):
            placed = [each for each in placed if _keeps_values(self.text, [each])]
        others = [
            each.message if each.line == 1 else f"{each.message} (line {each.line} of the draft)"
            for each in found
            if each not in placed
        ]
        top = [f"Drafted by {model} with `assay tasks draft`. Review every claim, weight and gate before use."]
        top += [f"Drafting stopped early: {_one_line(stopped)}"] if stopped else []
        top += [f"Findings in comments that start with `doubtful`: {len(placed)}."] if placed else []
        notes = [*others, *self.doubts][:MAX_COMMENTS]
        top += ["Doubtful:", *(f"- {_one_line(note)}" for note in notes)] if notes else []
        return "".join(f"# {line}\n" for line in top) + _with_comments(self.text, placed)


def _with_comments(text: str, problems: Sequence[Problem]) -> str:
    """Return a text with the message of each problem in a comment above its line, and above the comments before it."""
    lines = text.split("\n")
    comments: dict[int, list[str]] = {}
    for problem in problems:
        index = min(problem.line, len(lines)) - 1
        indent = lines[index][: len(lines[index]) - len(lines[index].lstrip(" "))]
        while index > 0 and lines[index - 1].lstrip(" ").startswith("#"):
            index -= 1
        comments.setdefault(index, []).append(f"{indent}# doubtful: {_one_line(problem.message)}")
    return "\n".join(line for index, each in enumerate(lines) for line in (*comments.get(index, ()), each))


def _keeps_values(text: str, problems: Sequence[Problem]) -> bool:
    """Return whether comments at these lines are comments: inside a text of several lines they are text."""
    try:
        return bool(read_document(_with_comments(text, problems), "").value == read_document(text, "").value)
    except InvalidTask:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftResult:
    """The best valid draft, or the last one if none is valid.

    ``stopped`` is the error because of which no further draft was requested. ``usd`` is the cost; None if unknown.
    """

    draft: Draft
    rounds: int
    stopped: str | None
    usd: float | None


async def draft_task(runtime: Runtime, inputs: DraftInputs, report: Callable[[int, Draft], None]) -> DraftResult:
    """Request drafts until one has no problems. ``report`` is called with the number of each draft and the draft.

    Raises:
        ModelNotConfigured: the model cannot be used on this machine.
        LLMError: there is no draft, because the first request failed.
    """
    name = parse_model(inputs.model)
    client, model_name = await runtime.models.open_client(inputs.model)
    parameters = RequestParameters(runtime.settings.parameters, {model_name: name.provider})
    meter = UsageMeter()
    llm = ObservedLLM(client, (meter,), prepare=parameters.add_to)
    drafts: list[Draft] = []
    stopped = None
    while len(drafts) < inputs.rounds and (not drafts or drafts[-1].problems):
        request = draft_request(inputs, model_name, runtime.block_builder, drafts)
        try:
            reply = await llm.complete(request)
        except LLMError as error:
            unusable = [one.text for one in error.unusable if one.text.strip()]
            if not drafts and not unusable:
                raise
            stopped = str(error)
            if not drafts:
                drafts.append(Draft(text=neutralise(unusable[-1]), is_valid=False, problems=(_top(stopped),)))
            break
        drafts.append(await _checked(runtime, inputs, cast(DraftReply, reply.parsed), meter))
        report(len(drafts), drafts[-1])
    valid = [draft for draft in reversed(drafts) if draft.is_valid]
    best = min(valid, key=lambda draft: len(draft.problems) + len(draft.faults)) if valid else drafts[-1]
    return DraftResult(draft=best, rounds=len(drafts), stopped=stopped, usd=meter.total.usd)


def draft_request(inputs: DraftInputs, model: str, block_builder: BlockBuilder, earlier: Sequence[Draft]) -> LLMRequest:
    """Return the request for a draft: the first one, or one without the problems of the last ``earlier`` one."""
    texts = [("question", inputs.question)]
    if inputs.example is not None:
        texts.append(("example", inputs.example))
    if earlier:
        last = earlier[-1]
        problems = (f"line {each.line}, column {each.column}: {each.message}" for each in last.problems)
        listed = [_one_line(problem) for problem in problems][:MAX_COMMENTS]
        texts += [("draft", last.text[:MAX_DRAFT_CHARS]), ("problems", "\n".join(listed))]
    vote = len(earlier)  # a model that repeats its draft is asked again
    return render_texts("draft_task", texts, block_builder).request(model, DraftReply, vote=vote)


async def _checked(runtime: Runtime, inputs: DraftInputs, reply: DraftReply, meter: UsageMeter) -> Draft:
    """Return the draft of a reply with everything that the checks found."""
    text = neutralise(reply.task_yaml)
    fenced = _FENCED.fullmatch(text)
    text = (fenced[1] if fenced else text).strip("\n") + "\n"
    draft = Draft(text=text, is_valid=False, doubts=tuple(doubt for doubt in reply.doubts if doubt.strip()))
    if len(text) > MAX_DRAFT_CHARS:
        return replace(draft, problems=(_top(f"the draft has {len(text)} characters (max {MAX_DRAFT_CHARS})"),))
    try:
        compiled, problems = await asyncio.to_thread(_compiled, text, inputs.question)
    except InvalidTask as error:
        return replace(draft, problems=error.problems)
    draft = replace(draft, is_valid=True, problems=tuple(problems))
    return await _tested(runtime, inputs, draft, compiled, meter)


def _compiled(text: str, question: str) -> tuple[CompiledTask, list[Problem]]:
    """Compile a draft and return it with its lint findings."""
    compiled = compile_task(text)
    problems = [
        compiled.problem(finding.node_id, f"{finding.node_id}: {finding.message}")
        for finding in lint(compiled.sample_rubric())
        if finding.code is not LintRule.ONLY_CRITICAL  # written as `all_or_nothing`
    ]
    if compiled.task.description.split() != neutralise(question).split():
        problems.append(compiled.document.problem(("description",), "description: must be the question, word for word"))
    return compiled, problems


async def _tested(
    runtime: Runtime, inputs: DraftInputs, draft: Draft, compiled: CompiledTask, meter: UsageMeter
) -> Draft:
    """Apply the checks of ``assay tasks test`` to a valid draft. What they find is a problem; a fault is not."""
    try:
        with TemporaryDirectory(prefix="assay-draft-") as folder:
            path = Path(folder) / f"{inputs.task_id}.yaml"
            await asyncio.to_thread(path.write_text, draft.text, encoding="utf-8")
            judge = await asyncio.to_thread(load_judge, path)
            if inputs.example is None:
                judged = text_judge(runtime, judge, inputs.model, lambda client: ObservedLLM(client, (meter,)))
                run = observed_run(await judged(EMPTY_ANSWER))
                finding = empty_answer_finding(run)
                findings = [] if finding is None else list(_score_problems(compiled, [finding]))
            else:
                run, report = await model_test(runtime, judge, inputs.example, inputs.model, observers=(meter,))
                findings = list(_problems(compiled, run, report))
    except (JudgeError, CacheError, TrialFailed) as error:
        return replace(draft, faults=(_top(f"not tested: {error}"),))
    faults = [
        compiled.problem(leaf.key, f"not judged: {leaf.key}: {leaf.claim or leaf.desc} ({leaf.reason})")
        for leaf in run.leaves.values()
        if leaf.state == Outcome.NOT_JUDGED
    ]
    if run.result["status"] != "complete" and not faults:
        faults.append(_top(f"not judged: the result is {run.result['status']}"))
    return replace(draft, problems=(*draft.problems, *findings), faults=tuple(faults))


def _problems(compiled: CompiledTask, run: ObservedRun, report: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what a test on the example answer found."""
    for leaf in run.leaves.values():
        if leaf.state in BAD_STATES:
            about = f"{leaf.key}: {leaf.claim or leaf.desc} ({leaf.reason or leaf.state})"
            yield compiled.problem(leaf.key, f"the example answer does not pass {about}")
    yield from _score_problems(compiled, report["scores"]["findings"])
    for leaf_json in report["scores"]["gold"]["split_votes"]:
        message = f"{leaf_json['leaf']}: the votes on the example answer disagree; make the claim more precise"
        yield compiled.problem(leaf_json["leaf"], message)
    for finding in report["fields"]["findings"]:
        message = f"{finding['subject']}: {finding['message']} {finding['fix']}"
        yield Problem(line=finding["line"] or 1, column=1, message=message)
    for finding in report["fields"]["exempt"]:
        message = f"{finding['subject']}: exempt from the test; remove the comment `# untested:`"
        yield Problem(line=finding["line"] or 1, column=1, message=message)


def _score_problems(compiled: CompiledTask, findings: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Yield the findings about scores, at each of their leaves. Leaves that the example does not pass are left out."""
    for finding in findings:
        if finding["code"] == "gold_fails":
            continue
        message = f"{finding['message']} {finding['fix']}"
        if not finding["leaves"]:
            yield _top(message)
        for leaf in finding["leaves"]:
            yield compiled.problem(leaf["leaf"], f"{leaf['leaf']}: {message}")


def _top(message: str) -> Problem:
    return Problem(line=1, column=1, message=message)


def _one_line(text: str) -> str:
    """Return an untrusted text as one line that can be a YAML comment."""
    line = " ".join(neutralise(text).split())
    return line if len(line) <= MAX_COMMENT_CHARS else f"{line[: MAX_COMMENT_CHARS - 3]}..."

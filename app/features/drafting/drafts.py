"""Drafts of a task: a model writes a task file, code checks it, and the model repairs what the checks found.

Question, example answer and drafts are untrusted. The model sees them in blocks, and a draft is only parsed and judged.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, cast

from pydantic import BaseModel, Field

from app.engine.runtime import Runtime
from app.engine.text_judging import text_judge
from cache.errors import CacheError
from judges.analysis.mutation.leaves import observed_run
from judges.errors import JudgeError, LLMError
from judges.llm.client import LLMRequest
from judges.llm.observed import ObservedLLM, UsageMeter
from judges.llm.parameters import RequestParameters
from judges.llm.providers import parse_model
from judges.loader import load_judge
from judges.prompting.blocks import BlockBuilder, neutralise
from judges.prompting.rendering import render_texts
from judges.yaml_tasks.compiler import CompiledTask, compile_task
from judges.yaml_tasks.document import InvalidTask, Problem
from rubrics.lint import lint
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
    why the example answer, or parts of it, were not judged.
    """

    text: str
    is_valid: bool
    problems: tuple[Problem, ...] = ()
    doubts: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    def commented(self, model: str, stopped: str | None = None) -> str:
        """Return the text below a comment that lists what remains doubtful. Lines are those of the returned text."""
        notes = [f"drafting stopped early: {stopped}"] if stopped else []
        notes += [*self.faults, *self.doubts]
        listed = min(len(self.problems) + len(notes), MAX_COMMENTS)
        offset = 1 + (1 + listed if listed else 0)
        entries = [f"line {each.line + offset}, column {each.column}: {each.message}" for each in self.problems]
        comments = [f"Drafted by {model} with `assay tasks draft`. Review every claim, weight and gate before use."]
        if listed:
            comments += ["Doubtful:", *(f"- {_one_line(entry)}" for entry in [*entries, *notes][:listed])]
        return "".join(f"# {comment}\n" for comment in comments) + self.text


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
    parameters = RequestParameters(runtime.settings.parameters, provider=name.provider, model=model_name)
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
                drafts.append(Draft(text=neutralise(unusable[-1]).text, is_valid=False, problems=(_top(stopped),)))
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
    rendered = render_texts("draft_task", texts, block_builder)
    return LLMRequest(
        model=model,
        messages=rendered.messages,
        schema=DraftReply,
        prompt=rendered.prompt,
        vote=len(earlier),  # a model that repeats its draft is asked again
        parts=rendered.parts,
    )


async def _checked(runtime: Runtime, inputs: DraftInputs, reply: DraftReply, meter: UsageMeter) -> Draft:
    """Return the draft of a reply with everything that the checks found."""
    text = neutralise(reply.task_yaml).text
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
    return draft if inputs.example is None else await _tried(runtime, inputs, inputs.example, draft, compiled, meter)


def _compiled(text: str, question: str) -> tuple[CompiledTask, list[Problem]]:
    """Compile a draft and return it with its lint findings."""
    compiled = compile_task(text)
    problems = [
        compiled.problem(finding.node_id, f"{finding.node_id}: {finding.message}")
        for finding in lint(compiled.sample_rubric())
    ]
    if compiled.task.description.split() != neutralise(question).text.split():
        problems.append(compiled.document.problem(("description",), "description: must be the question, word for word"))
    return compiled, problems


async def _tried(
    runtime: Runtime, inputs: DraftInputs, example: str, draft: Draft, compiled: CompiledTask, meter: UsageMeter
) -> Draft:
    """Judge the example answer with a valid draft. Failed leaves are problems; a fault is not."""
    try:
        with TemporaryDirectory(prefix="assay-draft-") as folder:
            path = Path(folder) / f"{inputs.task_id}.yaml"
            await asyncio.to_thread(path.write_text, draft.text, encoding="utf-8")
            judge = await asyncio.to_thread(load_judge, path)
        judged = text_judge(runtime, judge, inputs.model, lambda client: ObservedLLM(client, (meter,)))
        result = await judged(example)
    except (JudgeError, CacheError) as error:
        return replace(draft, faults=(f"the example answer was not judged: {error}",))
    problems, faults = list(draft.problems), []
    for leaf in observed_run(result).leaves.values():
        about = f"{leaf.key}: {leaf.claim or leaf.desc} ({leaf.reason or leaf.outcome})"
        if leaf.outcome is Outcome.FAILED:
            problems.append(compiled.problem(leaf.key, f"the example answer does not pass {about}"))
        elif leaf.outcome is Outcome.NOT_JUDGED:
            faults.append(f"not judged on the example answer: {about}")
    if result["status"] != "complete" and not faults:
        faults.append(f"the example answer was not judged: the result is {result['status']}")
    return replace(draft, problems=tuple(problems), faults=tuple(faults))


def _top(message: str) -> Problem:
    return Problem(line=1, column=1, message=message)


def _one_line(text: str) -> str:
    """Return an untrusted text as one line that can be a YAML comment."""
    line = " ".join(neutralise(text).text.split())
    return line if len(line) <= MAX_COMMENT_CHARS else f"{line[: MAX_COMMENT_CHARS - 3]}..."

"""Example of a learning agent for step sessions, and its twin without memory. Neither needs a model.

    python -m app.features.suites.example_agent --url http://127.0.0.1:8000 --data DATA --train-tasks 50

The agent remembers the correction of each step: task text and step number give the text of the correct option and the
operation. It picks the option with the remembered text, or without one the option with most words of the task. A
session with training tasks shows what the memory is worth: both agents answer the same questions, and only one learns.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from typing import Any

from assay_client import Client, Feedback, Question, SuiteSession

_ID = re.compile(r" (?:backend_node_id|id|bnid)=\S+?(?=[ >])")
_NOTE = re.compile(r" \((?:rank|score) [^()]*\)$")
_WORD = re.compile(r"\w+")


class ExampleAgent:
    """Agent that answers questions of the guide's protocol. With ``remembers``, it uses earlier corrections."""

    def __init__(self, *, remembers: bool) -> None:
        self._remembers = remembers
        self._corrections: dict[tuple[str, int], tuple[str, str, str]] = {}

    def answer(self, question: Question) -> str:
        """Return the reply to a question."""
        known = self._corrections.get((question.task, question.step))
        if known is not None:
            text, op, value = known
            for letter, option in question.options:
                if stable_text(option) == text:
                    return f"Answer: {letter}.\nAction: {op}\nValue: {value}"
        words = set(_WORD.findall(question.task.lower()))

        def overlap(option: tuple[str, str]) -> int:
            return len(words & set(_WORD.findall(option[1].lower())))

        best, _ = max(question.options, key=overlap, default=("A", ""))
        return f"Answer: {best}.\nAction: CLICK"

    def learn(self, question: Question, feedback: Feedback) -> None:
        """Remember the correction of a step."""
        gold = feedback.gold
        if self._remembers and gold is not None and gold["options"]:
            text = stable_text(gold["options"][0]["text"])
            self._corrections[question.task, question.step] = (text, gold["op"], gold["value"])


def stable_text(option: str) -> str:
    """Return the text of an option without what differs between pages: ids, rank and score.

    >>> stable_text("<a backend_node_id=7 x> Go </a> (rank 3, score 0.9)")
    '<a x> Go </a>'
    """
    return _ID.sub("", _NOTE.sub("", option))


def run(session: SuiteSession, agent: ExampleAgent) -> dict[str, Any]:
    """Answer all questions of a session. Returns its figures by phase."""
    for question in session:
        feedback = session.answer(agent.answer(question))
        if feedback is not None:
            agent.learn(question, feedback)
    return session.figures()


def compare(client: Client, options: Mapping[str, Any]) -> dict[str, float | None]:
    """Run both agents over the same session options. Returns their step success in the test phase."""
    steps: dict[str, float | None] = {}
    for name, remembers in (("with memory", True), ("without memory", False)):
        session = client.start_session("mind2web", {**options, "protocol": "guide", "run": f"example, {name}"})
        micro = run(session, ExampleAgent(remembers=remembers))["test"]["micro"]
        steps[name] = None if micro is None else micro["step"]
    return steps


def main() -> None:
    """Compare both agents on a server and print their step success."""
    parser = argparse.ArgumentParser(description="Compare an agent with memory and its twin without one.")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--api-key")
    parser.add_argument("--data", required=True, help="data below a folder of ASSAY_SUITE_DATA")
    parser.add_argument("--split", default="test_task")
    parser.add_argument("--train-tasks", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    options = {
        "data": wanted.data,
        "split": wanted.split,
        "train_tasks": wanted.train_tasks,
        "seed": wanted.seed,
        "shuffle_tasks": True,
    }
    with Client(wanted.url, api_key=wanted.api_key) as client:
        for name, step in compare(client, options).items():
            sys.stdout.write(f"{name}: step success {'unknown' if step is None else f'{step:.3f}'}\n")


if __name__ == "__main__":
    main()

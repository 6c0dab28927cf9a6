"""Unusual calls of scripts: invalid sources, wrong calls, nodes created directly, scores requested too early."""

# mypy: ignore-errors

from pydantic import BaseModel, Field

import mind2web2.verification_tree as vt
from mind2web2 import Evaluator, eval_toolkit

ONE = "https://shop.example/one"


class Shop(BaseModel):
    größe: str | None = Field(default=None, description="Größe des Ladens")


async def odd_sources(e: Evaluator, group: vt.VerificationNode) -> None:
    sources = {
        "none": None, "empty": [], "blank": "  ", "blanks": ["", None], "tuple": (ONE,), "words": ["N/A", "see above"],
        "mixed": [None, ONE, "", 5], "spelled": [r" HTTP://www.shop.example/one/?utm_id=1\#x "],
    }  # fmt: skip
    for name, source in sources.items():
        await e.verify(f"«{name}» hält", e.add_leaf(name, name, group), source, additional_instruction="")


async def wrong_calls(e: Evaluator, group: vt.VerificationNode) -> None:
    own = e.add_leaf("own", "its own prerequisite", group)
    even = e.add_leaf("even", "an even number of votes", group)
    lone = e.add_leaf("lone", "one vote", group)
    await e.verify("x", own, extra_prerequisites=[own])
    await e.verify("x", even, num_trials=4)
    await e.verify("x", lone, num_trials=4, majority_vote=None, temperature=1)
    raised = []
    for call in (
        e.verify(None, lone),
        e.extract("p", Shop, source=[ONE]),
        e.extract("p", Shop, use_screenshot=True),
        e.verifier.verify_by_urls("x", []),
    ):
        try:
            await call
        except (AssertionError, TypeError, ValueError) as error:
            raised.append(type(error).__name__)
    e.add_custom_info({"raised": raised}, info_name="wrong")


async def evaluate_answer(*, client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini", **_):
    e = Evaluator()
    asked = {"client": client, "answer": answer, "global_cache": cache, "global_semaphore": semaphore, "logger": logger}
    root = e.initialize("awkward", "parallel", agent_name, answer_name, **asked, verify_model=model)
    await odd_sources(e, e.add_parallel("sources", "sources"))
    await wrong_calls(e, e.add_parallel("calls", "calls", root, foo="ignored"))
    hand = vt.VerificationNode(id="hand", desc="by hand", strategy="sequential", children=[])
    root.add_node(hand)
    for n in range(2):
        hand.add_node(vt.VerificationNode(id=f"hand_{n}", desc=f"step {n}", critical=True))
    hand.children[0].score, hand.children[0].status = 1.0, "passed"
    hand.children[1].claim = "Der zweite Schritt stimmt"
    await e.verify(hand.children[1].claim, hand.children[1], extra_prerequisites=hand.children[0])
    found = [await e.extract("p", Shop, "laden"), await e.extract("p", Shop, "page", ONE, None, use_screenshot=False)]
    free, outside = (
        eval_toolkit.create_evaluator(task_description="t", **asked)[1],
        vt.VerificationNode(id="o", desc="o"),
    )
    said = [await free.simple_verify("frei"), await free.verify_by_urls("frei", [ONE, ONE], outside, num_trials=1)]
    batch = [
        ("a", ONE, e.add_leaf("hand_1", "taken", hand.children[0], critical=True), None),
        ("b", (), None, "x"),
        (None,) * 4,
    ]
    done = [each if isinstance(each, bool) else type(each).__name__ for each in await e.batch_verify(batch)]
    images, text = await e.extractor.get_page_info(ONE)
    e.add_custom_info({"said": said, "outside": outside.status, "batch": done, "page": [images, "lamps" in text]})
    e.add_custom_info({"found": [each.dict() for each in found], "ids": e.get_all_node_ids()[:3]}, "more")
    return e.get_summary()

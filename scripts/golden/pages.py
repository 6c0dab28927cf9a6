"""Golden cases of page representation, tournament rounds and candidate ranking."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from lxml import etree

from golden.golden_case import GoldenCase
from golden.texts import parse_seq2seq
from judges.suites.errors import PageUnusable
from judges.suites.mind2web.page import Element, Page, bracket_text, first_words, number_candidates, show_page
from judges.suites.mind2web.ranks import RankingMetrics
from judges.suites.mind2web.tournament import (
    CLICK,
    NONE_LETTER,
    Parsed,
    Prediction,
    Tournament,
    gold_op_string,
    parse_llm,
    score_prediction,
    shuffled,
)
from judges.suites.questions import option_index

_FORMS = {"html_brackets": True, "round_brackets": False}
_BETWEEN_TAGS = re.compile(r">\s+<")
HISTORY = 3
ANCESTOR_WORDS = 50
TARGET_WORDS = 100
_OPENED = re.compile(r"\s*\(\s*")
_CLOSED = re.compile(r"\s*\)\s*")
_PAGE_KEYS = ("cleaned_html", "page_html", "html")


def dom_cases(golden: Mapping[str, Any]) -> Iterator[GoldenCase]:
    """Check representations of pages. Values that a case omits come from ``sample``."""
    sample = golden["sample"]
    for number, own in enumerate(golden["cases"]):
        inputs = {**sample, **own.get("sample", {}), **own}
        case = GoldenCase(str(own.get("id", number)))
        with case.running():
            page, ids = Page.parse(_page_text(inputs)), tuple(map(str, inputs["candidate_ids"]))
            for name, html_brackets in _FORMS.items():
                if name in own:
                    case.expect(name, own[name], _shown(page, ids, inputs, own[name], html_brackets=html_brackets))
            if "pruned_xml_c14n" in own:
                case.expect(
                    "pruned_xml_c14n", _canonical(own["pruned_xml_c14n"]), _canonical(_xml_text(page.pruned(ids)))
                )
            if "id_mapping" in own:
                case.expect("id_mapping", own["id_mapping"], show_page(page, ids).numbers)
            if "raises" in own:
                case.expect("raises", True, _raises(page, ids))
            known = {
                *sample,
                *_PAGE_KEYS,
                *_FORMS,
                "sample",
                "candidate_ids",
                "gold_id",
                "pruned_xml_c14n",
                "id_mapping",
            }
            case.note_unchecked(own, frozenset({*known, "raises"}))
        yield case


def _page_text(inputs: Mapping[str, Any]) -> str:
    """Return the page of a case.

    A "no-whitespace" case without its own page uses the page of ``sample`` with the white space between tags removed.
    """
    text = str(next(inputs[key] for key in _PAGE_KEYS if isinstance(inputs.get(key), str)))
    if "no-whitespace" in str(inputs.get("id", "")):
        return _BETWEEN_TAGS.sub("><", text)
    return text


def _shown(
    page: Page, ids: tuple[str, ...], inputs: Mapping[str, Any], expected: Mapping[str, Any], *, html_brackets: bool
) -> dict[str, Any]:
    if "raises" in expected:
        return {"raises": expected["raises"]} if _raises(page, ids) else {}
    shown_page = show_page(page, ids, html_brackets=html_brackets)
    values: dict[str, Any] = {"context": shown_page.context, "choices": [list(option) for option in shown_page.options]}
    if "gold_id" in inputs:
        place = shown_page.numbers.get(str(inputs["gold_id"]))
        letter = NONE_LETTER if place is None else chr(ord(NONE_LETTER) + 1 + place)
        values["target"] = gold_text(letter, inputs["operation"]["op"], inputs["operation"].get("value", ""))
    return {name: value for name, value in values.items() if name in expected}


def gold_text(letter: str, op: str, value: str) -> str:
    """Return the target text of fine-tuning.

    >>> gold_text("C", "SELECT", "2 Guests"), gold_text("B", "CLICK", ""), gold_text("A", "CLICK", "")
    ('C.\\nAction: SELECT\\nValue: 2 Guests', 'B.\\nAction: CLICK\\n', 'A.')
    """
    if letter == NONE_LETTER:
        return f"{NONE_LETTER}."
    return f"{letter}.\nAction: {op}\n{'' if op == CLICK else f'Value: {value}'}"


def _raises(page: Page, ids: tuple[str, ...]) -> bool:
    try:
        show_page(page, ids)
    except PageUnusable:
        return True
    return False


def _canonical(text: str) -> str:
    """Return canonical XML without white space between tags."""
    root = etree.fromstring(text.encode())
    for element in root.iter():
        element.text = element.text if (element.text or "").strip() else None
        element.tail = element.tail if (element.tail or "").strip() else None
    return etree.tostring(root, method="c14n").decode()


def _xml_text(root: Element) -> str:
    return etree.tostring(root, encoding="unicode")


def tournament_cases(golden: Mapping[str, Any]) -> Iterator[GoldenCase]:
    """Replay recorded tournaments."""
    for number, inputs in enumerate(golden["cases"]):
        case = GoldenCase(str(inputs.get("id", number)))
        with case.running():
            own = next((inputs[key] for key in _PAGE_KEYS if key in inputs), None)
            page = (
                Page.parse(own)
                if own is not None
                else _first_items(_page_with_items(golden, len(inputs["ranks"])), len(inputs["ranks"]))
            )
            _play(case, inputs, page)
            known = {
                "n_pos",
                "n_neg",
                "pos_ids",
                "ranks",
                "operation",
                "top_k",
                "shuffled_order",
                "rounds",
                "prediction",
            }
            known |= {"element_acc", "action_f1", "step_acc", "python_random_seed", *_PAGE_KEYS}
            case.note_unchecked(inputs, frozenset(known))
        yield case


def _page_with_items(golden: Mapping[str, Any], count: int) -> str:
    """Return the smallest generated page that has at least ``count`` items; ``page_html_for_24`` has 24."""
    pages = {key.rpartition("_")[2]: page for key, page in golden.items() if key.startswith("page_html")}
    sizes = sorted(int(size) for size in pages if size.isdecimal())
    fitting = [size for size in sizes if size >= count] or sizes[-1:]
    return str(pages[str(fitting[0])] if fitting else next(iter(pages.values())))


def _first_items(whole: str, count: int) -> Page:
    """Return the generated page with its first ``count`` items. The items are three levels below the root."""
    root = etree.fromstring(whole.encode())
    container = root[0][0]
    items = list(container)
    for item in items[count:]:
        container.remove(item)
    if 0 < count < len(items):
        items[count - 1].tail = items[-1].tail
    return Page(root)


@dataclass(slots=True)
class Seq2SeqTournament(Tournament):
    """Tournament of fine-tuned models: a letter beyond the options leaves an earlier pick in place."""

    def reply(self, options: Sequence[str], parsed: Parsed) -> str | None:
        index = option_index(parsed.letter)
        return None if index is None or index > len(options) else Tournament.reply(self, options, parsed)


def _play(case: GoldenCase, inputs: Mapping[str, Any], page: Page) -> None:
    top_ids = [id for id, rank in inputs["ranks"].items() if rank < inputs["top_k"]]
    positives = [id for id in map(str, inputs["pos_ids"]) if id in top_ids]
    order = [str(id) for id in inputs.get("shuffled_order", ())]
    if "python_random_seed" in inputs:
        negatives = [id for id in top_ids if id not in inputs["pos_ids"]]
        order = shuffled(positives, negatives, Random(inputs["python_random_seed"]))  # noqa: S311 - not a secret
        if "shuffled_order" in inputs:
            case.expect("shuffled_order", inputs["shuffled_order"], order)
    # Fine-tuned models get round brackets, and their replies have another format.
    seq2seq = any(one.get("context", "").startswith("(") for one in inputs["rounds"])
    tournament = (Seq2SeqTournament if seq2seq else Tournament)(order if positives else [])
    for place, one in enumerate(inputs["rounds"]):
        group = tournament.next_group()
        if group is None:
            case.expect(f"rounds.{place}", "a round", "the end")
            break
        shown_page = show_page(page, group, html_brackets=not seq2seq)
        values = {
            "candidate_ids": list(group),
            "choices": [list(option) for option in shown_page.options],
            "context": shown_page.context,
        }
        case.expect(f"rounds.{place}", {name: one[name] for name in values if name in one}, _only(values, one))
        parsed = (parse_seq2seq if seq2seq else parse_llm)(one["model_output"])
        tournament.reply([id for id, _ in shown_page.options], parsed)
    case.expect("rounds", "the end", "the end" if tournament.next_group() is None else "a further round")
    op = inputs["operation"]
    element, f1 = score_prediction(tournament.prediction, positives, gold_op_string(op["op"], op.get("value", "")))
    case.expect("prediction", Prediction(*inputs["prediction"][-2:])._asdict(), tournament.prediction._asdict())
    figures = {"element_acc": element, "action_f1": f1, "step_acc": int(element == f1 == 1)}
    case.expect("step", _only(inputs, figures), _only(figures, inputs))


def _only(values: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in names}


def ranking_cases(golden: Mapping[str, Any]) -> Iterator[GoldenCase]:
    """Check ranks, ranking metrics and ranker inputs."""
    by_text, metrics = golden["scores"], RankingMetrics()
    scores: dict[str, dict[str, float]] = {}
    ranks: dict[str, dict[str, int]] = {}
    for instance in golden["instances"]:
        sample_id = f"{instance['annotation_id']}_{instance['action_uid']}"
        listed: Sequence[Sequence[str]] = [*instance["pos_candidates"], *instance["neg_candidates"]]
        scores[sample_id] = {str(id): by_text[text] for id, text in listed}
        ranks[sample_id] = ranks_of(scores[sample_id])
        metrics.add(ranks[sample_id][str(id)] for id, _ in instance["pos_candidates"])
    if "query_for_first" in golden:
        first, case = golden["instances"][0], GoldenCase("query_for_first")
        with case.running():
            case.expect(
                "text", golden["query_for_first"], ranker_query(first["confirmed_task"], first["previous_actions"])
            )
        yield case
    if "pickle" in golden:
        for part, values in (("scores", scores), ("ranks", ranks)):
            for sample_id in sorted({*golden["pickle"].get(part, {}), *values}):
                case = GoldenCase(f"pickle.{part}.{sample_id}")
                with case.running():
                    case.expect("entry", golden["pickle"].get(part, {}).get(sample_id), values.get(sample_id))
                yield case
    if "results" in golden:
        case = GoldenCase("results")
        with case.running():
            case.expect("results", golden["results"], _only(metrics.report(), golden["results"]))
        yield case
    yield from _documents(golden)


def _documents(golden: Mapping[str, Any]) -> Iterator[GoldenCase]:
    """Check the ranker input of single elements, if the file contains the page."""
    listing = golden.get("format_candidate_real")
    if listing is None:
        return
    containers = [container for container in (listing, golden, golden.get("sample")) if isinstance(container, Mapping)]
    pages = [container[key] for container in containers for key in _PAGE_KEYS if isinstance(container.get(key), str)]
    if not pages:
        case = GoldenCase("format_candidate_real")
        with case.running():
            case.not_checked.append("format_candidate_real (its page is not in the file)")
        yield case
        return
    page = Page.parse(pages[0])
    for id, text in _listed(listing):
        case = GoldenCase(f"format_candidate_real.{id}")
        with case.running():
            case.expect("text", text, ranker_document(page, id))
        yield case


def _listed(listing: Any) -> Iterator[tuple[str, str]]:
    """Yield pairs of id and text from a map, from pairs, or from objects that contain both."""
    if isinstance(listing, Mapping):
        inner = next((value for value in listing.values() if isinstance(value, list | Mapping)), None)
        if inner is not None:
            yield from _listed(inner)
            return
        yield from ((id, text) for id, text in listing.items() if id not in _PAGE_KEYS)
        return
    for one in listing:
        if isinstance(one, Mapping):
            id = next(value for key, value in one.items() if key.endswith("id"))
            text = next(value for value in one.values() if isinstance(value, str) and "target:" in value)
            yield str(id), text
        else:
            yield str(one[0]), str(one[1])


def ranker_query(task: str, history: Sequence[str]) -> str:
    """Return the query of the ranker: the task and the last three actions.

    >>> ranker_query("t", ["a", "b", "c", "d"])
    'task is: t\\nPrevious actions: b; c; d'
    """
    return f"task is: {task}\nPrevious actions: {'; '.join(history[-HISTORY:])}"


def ranker_document(page: Page, candidate_id: str) -> str:
    """Return the text of a candidate for the ranker: its ancestors, then the element.

    Raises:
        PageUnusable: the page does not contain the candidate.
    """
    root = page.pruned((candidate_id,))
    [(_, element), *_] = number_candidates(root)
    target = first_words(bracket_text(element, html_brackets=False), TARGET_WORDS)
    parent, ancestors = element.getparent(), ""
    if parent is not None:
        parent.remove(element)
        above = _CLOSED.sub("", _OPENED.sub("/", bracket_text(root, html_brackets=False)))
        ancestors = " ".join(above.split()[-ANCESTOR_WORDS:])
    return f"ancestors: {ancestors}\ntarget: {target}"


def ranks_of(scores: Mapping[str, float]) -> dict[str, int]:
    """Return ranks by descending score, starting at 0. Equal scores keep their order.

    >>> ranks_of({"11": 0.9, "12": 0.95, "13": 0.9})
    {'12': 0, '11': 1, '13': 2}
    """
    best_first = sorted(scores, key=lambda id: -scores[id])  # a stable sort
    return {id: rank for rank, id in enumerate(best_first)}

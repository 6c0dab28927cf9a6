"""Golden cases of parsers, F1 measures and prompt templates."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from typing import Any

from golden.golden_case import GoldenCase
from judges.suites.mind2web import step_player
from judges.suites.mind2web.questions import (
    demonstrations,
    last_message,
    parse_demonstration,
    question_text,
    read_template,
)
from judges.suites.mind2web.tournament import Parsed, op_f1, parse_llm, parse_operation
from judges.suites.multimodal.dialogue import parse_seeact
from judges.suites.multimodal.scoring import operation_f1, operation_string, report, token_ids
from judges.suites.questions import option_lines, option_name
from judges.suites.rules import Counting, Reading
from judges.suites.step_metrics import token_f1


def op_f1_without_punctuation(predicted: str, gold: str) -> float:
    """Return the F1 variant of the generation baseline, Synapse and AWM.

    It drops words that are substrings of ``string.punctuation``: a comma, but also "()".

    >>> op_f1_without_punctuation("SELECT $3,000 - $5,000", "SELECT $3,000 $5,000")
    1.0
    """
    return token_f1(_without_punctuation(predicted), _without_punctuation(gold))


def _without_punctuation(text: str) -> list[str]:
    return [word for word in text.split() if word not in string.punctuation]


_F1 = {"f1_multichoice": op_f1, "f1_generation_variant": op_f1_without_punctuation}


def op_f1_cases(golden: Mapping[str, Any]) -> Iterator[GoldenCase]:
    """Check the two F1 variants of Mind2Web."""
    for number, inputs in enumerate(golden["cases"]):
        case = GoldenCase(str(inputs.get("id", number)))
        with case.running():
            for name, measure in _F1.items():
                if name in inputs:
                    case.expect(name, inputs[name], measure(inputs["pred"], inputs["gold"]))
            case.note_unchecked(inputs, frozenset({"pred", "gold", *_F1}))
        yield case


def parse_cases(golden: Mapping[str, Any]) -> Iterator[GoldenCase]:
    """Check the parsers of chat and fine-tuned models."""
    for number, inputs in enumerate(golden["cases"]):
        case = GoldenCase(str(inputs.get("id", number)))
        with case.running():
            if "llm" in inputs:
                parsed = parse_llm(inputs["raw"])
                case.expect("llm", inputs["llm"], {"letter": parsed.letter, "op_string": parsed.op_string})
            if "seq2seq" in inputs:
                case.expect("seq2seq", inputs["seq2seq"], _seq2seq(inputs["raw"]))
            case.note_unchecked(inputs, frozenset({"raw", "llm", "seq2seq"}))
        yield case


def parse_seq2seq(raw: str) -> Parsed:
    """Parse the reply of a fine-tuned model, which starts with the letter.

    Raises:
        IndexError: the reply is empty. The published evaluation crashes in this case, too.

    >>> parse_seq2seq("C.\\nAction: CLICK")
    Parsed(letter='C', op_string='CLICK ')
    """
    text = raw.strip()
    return Parsed(letter=text[0], op_string=parse_operation(text))


def _seq2seq(raw: str) -> Any:
    try:
        parsed = parse_seq2seq(raw)
    except IndexError:
        return {"raises": "IndexError"}
    return [parsed.letter, parsed.op_string]


def seeact_cases(golden: Mapping[str, Any]) -> Iterator[GoldenCase]:
    """Check the SeeAct parser and option names."""
    for number, inputs in enumerate(golden.get("parse", ())):
        case = GoldenCase(str(inputs.get("id", f"parse {number}")))
        with case.running():
            parsed = parse_seeact(inputs["raw"])
            case.expect("parsed", inputs["parsed"], [parsed.element, parsed.action, parsed.value])
            case.note_unchecked(inputs, frozenset({"raw", "parsed"}))
        yield case
    for index, name in golden.get("option_names", ()):
        case = GoldenCase(f"option {index}")
        with case.running():
            case.expect("name", name, option_name(index))
        yield case
    for key in sorted(golden):
        if key.startswith("option_lines"):
            case = GoldenCase(key)
            with case.running():
                texts = [line.partition(". ")[2] for line in golden[key]]
                case.expect("lines", golden[key], option_lines(texts[:-1]))
            yield case


_ALIASES = {"PRESS": "CLICK", "OPEN": "CLICK", "CHOOSE": "SELECT", "INPUT": "TYPE", "ENTER": "TYPE"}


def parse_by_seed_commit(raw: str) -> tuple[str | None, str | None]:
    """Return answer and action as the first version of the guide's code reads them.

    >>> parse_by_seed_commit("Answer: B.\\nAction: select_option")
    ('B', 'SELECT_OPTION')
    """
    action = step_player.ACTION.search(raw)
    name = "" if action is None else action[1].strip().upper().replace(" ", "")
    return step_player.parse_reply(raw).answer, None if action is None else _ALIASES.get(name, name)


def port_cases(golden: Mapping[str, Any]) -> Iterator[GoldenCase]:
    """Check the integration guide's port, which differs from the published evaluation."""
    for number, inputs in enumerate(golden.get("parse", ())):
        case = GoldenCase(str(inputs.get("id", f"parse {number}: {inputs['raw'][:40]!r}")))
        with case.running():
            if "seed_commit" in inputs:
                case.expect("seed_commit", inputs["seed_commit"], parse_by_seed_commit(inputs["raw"]))
            if "head" in inputs:
                case.expect("head", inputs["head"], step_player.parse_reply(inputs["raw"]))
            case.note_unchecked(inputs, frozenset({"raw", "seed_commit", "head"}))
        yield case
    for number, inputs in enumerate(golden.get("operation_f1_head", ())):
        case = GoldenCase(str(inputs.get("id", f"operation_f1_head {number}")))
        with case.running():
            args = (inputs["gold_op"], inputs["gold_value"], inputs["pred_op"], inputs["pred_value"])
            case.expect("f1", inputs["f1"], step_player.operation_f1(*args))
        yield case
    for index, label in golden.get("labels", {}).items():
        case = GoldenCase(f"label {index}")
        with case.running():
            case.expect("label", label, option_name(int(index)))
        yield case


def tilde_cases(golden: Mapping[str, Any]) -> Iterator[GoldenCase]:
    """Check operation tokens and validity of Multimodal-Mind2Web~."""
    for number, inputs in enumerate(golden.get("tokens", ())):
        case = GoldenCase(str(inputs.get("id", f"tokens {number}")))
        with case.running():
            readings = {"click_value_dropped": False, "value_kept": True}
            for name, keep in readings.items():
                if name in inputs:
                    case.expect(name, inputs[name], _tokens(inputs, inputs[name], keep_click_value=keep))
            fields = {"pred_op", "pred_value", "gold_op", "gold_value"}
            case.note_unchecked(inputs, frozenset({*fields, *readings}))
        yield case
    for key in sorted(golden):
        if key.startswith("is_valid_example"):
            yield _validity(key, golden[key])


def _tokens(inputs: Mapping[str, Any], expected: Mapping[str, Any], *, keep_click_value: bool) -> dict[str, Any]:
    predicted = operation_string(inputs["pred_op"], inputs["pred_value"], keep_click_value=keep_click_value)
    gold = operation_string(inputs["gold_op"], inputs["gold_value"], keep_click_value=keep_click_value)
    values = {
        "pred_string": predicted,
        "gold_string": gold,
        "pred_tokens": list(token_ids(predicted)),
        "gold_tokens": list(token_ids(gold)),
        "f1_set": operation_f1(predicted, gold, Counting.SET),
        "f1_multiset": operation_f1(predicted, gold, Counting.MULTISET),
    }
    return {name: value for name, value in values.items() if name in expected}


def _validity(key: str, inputs: Mapping[str, Any]) -> GoldenCase:
    case = GoldenCase(key)
    rows = inputs["rows"]
    valid = [row for row in rows if _is_true(row["is_valid"])]
    values = {
        "n_rows": len(rows),
        "n_valid": len(valid),
        "n_tasks_with_valid": len({row["task_id"] for row in valid}),
        **report([_as_step(row) for row in valid], reading=Reading.SET, seed=0),
    }
    case.expect("expected", inputs["expected"], {name: values[name] for name in inputs["expected"] if name in values})
    return case


def _as_step(row: Mapping[str, Any]) -> dict[str, Any]:
    f1 = dict.fromkeys(Reading, row["op_f1"])
    fixed = {"website": "", "domain": "", "status": "scored"}
    return {"task_id": str(row["task_id"]), "element_acc": row["element_acc"], "f1": f1, **fixed}


def _is_true(value: Any) -> bool:
    return value is True or str(value).strip().lower() in ("true", "1", "yes")


def template_cases(golden: str) -> Iterator[GoldenCase]:
    """Check that a published prompt is readable and that its demonstrations have the layout of our questions."""
    case = GoldenCase("read")
    with case.running():
        template = read_template(golden, name="the template", ref="golden")
        case.expect("completed message", "user", template.messages[-1][0])
    yield case
    for number, (user_text, answer) in enumerate(demonstrations(template)):
        case = GoldenCase(f"demonstration {number}")
        with case.running():
            demonstration = parse_demonstration(user_text)
            if demonstration is None:
                case.expect("form", "a page between ''' and a question with options", user_text[:60])
            else:
                history = [] if demonstration["history"] == "None" else demonstration["history"].split("\n")
                options = [line.partition(". ")[2] for line in demonstration["options"].strip("\n").split("\n")]
                question = question_text(options, task=demonstration["task"], history=history, wording=template.wording)
                case.expect(
                    "content", user_text.rstrip("\n"), last_message(demonstration["page"], question).rstrip("\n")
                )
                case.expect("answer", answer.strip()[:7], "Answer:")
        yield case

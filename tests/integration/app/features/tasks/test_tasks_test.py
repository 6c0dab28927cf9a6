"""`assay tasks test` with public scripts, a model over HTTP, and faulty judges."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.engine.judge_trials import TrialFailed, field_test
from tests.fakes.warm_start import warm_assay
from tests.standin.call import Call
from tests.standin.llm import StandInLLM
from tests.unit.judges.analysis.task_tests.task_shapes import PRODUCTS

HOST = "https://museum.example"
ANSWER = f"""\
# Two museums

## Museums

| Name | Price | Urls |
|---|---|---|
| Louvre | 22 euros | {HOST}/louvre |
| Orsay | 16 euros | {HOST}/orsay |
"""
PAGES = {
    f"{HOST}/louvre": "A ticket of the Louvre costs 22 euros. The Louvre is open on Mondays.",
    f"{HOST}/orsay": "A ticket of the Orsay costs 16 euros. The Orsay is open on Mondays.",
}
SCRIPT = Path(__file__).parents[4] / "compat" / "scripts" / "museums.py"
NATIVE = """
from judges.context import JudgeContext
from judges.registry import judge

@judge(task="odd", description="It is odd.")
async def odd(ctx: JudgeContext) -> None:
    {body}
"""
FREE = """
from pydantic import BaseModel
from mind2web2 import Evaluator

class Best(BaseModel):
    best: str

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="lexical"):
    e = Evaluator()
    e.initialize("odd", agent_name=agent_name, answer_name=answer_name, client=client, answer=answer,
        global_cache=cache, global_semaphore=semaphore, logger=logger, default_model=model)
    found = await client.async_response(
        model=model, messages=[{"role": "user", "content": "Which is best?"}], response_format=Best
    )
    await e.verify(f"The best is {found.best}", e.add_leaf("best", "The best"))
    return e.get_summary()
"""


async def tasks_test(folder: Path, task: str, *arguments: str, **more: str) -> tuple[int, dict[str, Any], str]:
    """Run the command on the judge, the answer and the pages in ``folder``."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    given = ["--judges", ".", "--answer", "answer.md", "--pages", "pages.json", "--json"]
    process = await asyncio.create_subprocess_exec(
        *[warm_assay(), "tasks", "test", task, *given, *arguments],
        cwd=folder,
        env={**outside, "ASSAY_DATA_DIR": str(folder / "data"), **more},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, json.loads(out) if out.strip() else {}, err.decode()


def prepare(folder: Path, task: str, judge: str, answer: str, pages: Mapping[str, str]) -> None:
    (folder / f"{task}.py").write_text(judge)
    (folder / "answer.md").write_text(answer)
    (folder / "pages.json").write_text(json.dumps(pages))


def museums(call: Call) -> dict[str, Any]:
    """Return the rows of the table in the answer that the model is shown."""
    rows = re.findall(r"^\| (\w+) \| (\d[^|]*) \| ([^|]*) \|$", call.text, re.MULTILINE)
    return {"museums": [{"name": name, "price": price, "urls": [url]} for name, price, url in rows]}


async def test_public_script_is_tested_with_a_model_over_http(tmp_path: Path) -> None:
    await asyncio.to_thread(prepare, tmp_path, "museums", SCRIPT.read_text(), ANSWER, PAGES)
    async with StandInLLM(rule=lambda call: call.claim.strip() in call.page, extractions={"Museums": museums}) as model:
        code, report, err = await tasks_test(
            tmp_path, "museums", "--model", "openai/m", OPENAI_API_KEY="key", OPENAI_BASE_URL=model.base_url
        )
    assert code == 100, err
    assert model.calls
    findings = {finding["subject"]: finding for finding in report["fields"]["findings"]}
    assert findings.keys() == {"price, price_1", "monday, monday_1"}
    assert all("critical=True" in finding["fix"] and finding["line"] for finding in findings.values())
    assert (report["model"], report["scores"]["gold"]["passed"]) == ("openai/m", 6)


async def test_model_that_extracts_nothing_is_reported(tmp_path: Path) -> None:
    await asyncio.to_thread(prepare, tmp_path, PRODUCTS.task, PRODUCTS.judge, PRODUCTS.answer, PRODUCTS.pages)
    async with StandInLLM() as model:
        code, _, err = await tasks_test(
            tmp_path, PRODUCTS.task, "--model", "openai/m", OPENAI_API_KEY="key", OPENAI_BASE_URL=model.base_url
        )
    assert code == 2
    assert "extracted no values or no citations" in err
    assert "--model" in err


async def test_cancelled_test_ends_its_process(tmp_path: Path) -> None:
    body = "import time; time.sleep(600)"
    await asyncio.to_thread((tmp_path / "odd.py").write_text, NATIVE.format(body=body))
    test = asyncio.create_task(field_test(tmp_path / "odd.py", ANSWER, PAGES))

    def children() -> list[psutil.Process]:
        running = psutil.process_iter(["cmdline", "ppid"])
        mine = [each for each in running if each.info["ppid"] == os.getpid()]
        return [each for each in mine if "app.engine.judge_trials" in (each.info["cmdline"] or ())]

    async with asyncio.timeout(60):
        while not (found := children()):
            assert not test.done()
            await asyncio.sleep(0.05)
    test.cancel()
    with pytest.raises(asyncio.CancelledError):
        await test

    assert not any(each.is_running() for each in found)


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        (NATIVE.format(body="import os; os._exit(3)"), r"exit status 3"),
        (NATIVE.format(body="held = [bytearray(8_000_000) for _ in range(100_000)]"), "more memory than its limit"),
        (NATIVE.format(body="import os; os.kill(os.getpid(), 11)"), "SIGSEGV"),
        (NATIVE.format(body="import subprocess; subprocess.run(['true'])"), "Operation not permitted"),
        (NATIVE.format(body="raise ValueError('no such thing')"), "no such thing"),
        (FREE, "sends its own prompts"),
    ],
    ids=["exits", "eats", "crashes", "starts a process", "raises", "asks freely"],
)
def test_faulty_judge_ends_with_a_reason(tmp_path: Path, judge: str, message: str) -> None:
    (tmp_path / "odd.py").write_text(judge)
    with pytest.raises(TrialFailed, match=message):
        asyncio.run(field_test(tmp_path / "odd.py", ANSWER, PAGES))


def test_long_answer_is_refused_before_the_judge_runs(tmp_path: Path) -> None:
    (tmp_path / "fair.py").write_text(NATIVE.format(body="pass"))
    with pytest.raises(TrialFailed, match=r"300,000 characters, and a judge is tested on answers of at most 262,144"):
        asyncio.run(field_test(tmp_path / "fair.py", "a" * 300_000, PAGES))

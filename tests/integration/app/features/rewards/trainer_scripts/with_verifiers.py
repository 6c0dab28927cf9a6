"""Scoring of traces by the taskset, with the engine of verifiers. Prints rewards and errors."""

import asyncio
import json
import sys
from pathlib import Path

import verifiers.v1 as vf

from examples.trainers.verifiers import AssayTaskConfig, AssayTaskset, AssayTasksetConfig

given = json.loads(sys.argv[1])
Path("tasks.jsonl").write_text(json.dumps({"prompt": "When?", "rubric": given["rubric"]}) + "\n")
config = AssayTasksetConfig(tasks=Path("tasks.jsonl"), task=AssayTaskConfig(assay_url=given["url"]))
[task] = AssayTaskset(config)
assert task.data.prompt_text == "When?"


async def scored(text):
    record, agent = vf.TraceTask(data=task.data, type=type(task).__name__), vf.AgentInfo(config=vf.AgentConfig())
    trace = vf.Trace(task=record, agent=agent, root_reply=text)
    errors = []
    try:
        await task.score(trace)
    except vf.TaskError as error:
        errors.append(str(error))
    return {
        "ok": not errors,
        "reward": trace.reward,
        "rewards": {name: reward and reward.value for name, reward in trace.rewards.items()},
        "strict": trace.metrics.get("assay_strict"),
        "errors": errors,
    }


async def main():
    print(json.dumps({name: await scored(text) for name, text in given["answers"].items()}))


asyncio.run(main())

"""Reward of rollouts by the executor of OpenRLHF, from a reward server. Prints what the executor returns."""

import asyncio
import json
import sys
from types import SimpleNamespace

from openrlhf.utils.agent import SingleTurnAgentExecutor

given = json.loads(sys.argv[1])
PROMPT = "When? "


class Characters:
    """Tokenizer and generation engine in which every character is a token, and the response is given."""

    def __init__(self, response):
        self.response = response

    def __call__(self, text, **options):
        return {"input_ids": [SimpleNamespace(tolist=lambda: list(map(ord, text)))]}

    def decode(self, tokens, **options):
        return "".join(map(chr, tokens))

    async def generate(self, tokens, params, **options):
        output = SimpleNamespace(token_ids=list(map(ord, self.response)), finish_reason="stop", logprobs=None)
        return SimpleNamespace(outputs=[output])


async def reward(text):
    executor, policy = SingleTurnAgentExecutor(given["reward_url"]), Characters(text)
    label = json.dumps({"rubric": given["rubric"]})
    params = SimpleNamespace(max_tokens=2000, logprobs=None)
    done = await executor.execute(PROMPT, label, params, 4000, policy, policy)
    return {name: done[name] for name in ("reward", "scores", "extra_logs")}


async def main():
    print(json.dumps({name: await reward(text) for name, text in given["answers"].items()}))


asyncio.run(main())

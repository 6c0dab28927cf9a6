"""Everything at once: batch_verify, gather, single calls, five votes, and a gate that falls meanwhile."""

import asyncio

from mind2web2 import Evaluator


async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    e = Evaluator()
    e.initialize(
        "batches", agent_name=agent_name, answer_name=answer_name, client=client, answer=answer, global_cache=cache,
        global_semaphore=semaphore, logger=logger, default_model=model, extract_model="extracting-model",
    )  # fmt: skip
    first = e.add_parallel("first", "A batch")
    gate = e.add_leaf("gate", "The gate", first, critical=True)
    batched = [e.add_leaf(f"batched_{n}", f"Batched {n}", first) for n in range(3)]
    results = await e.batch_verify(
        [
            ("The gate holds", None, gate, "None"),
            ("Batched 0 holds", "https://shop.example/one", batched[0], "None"),
            ("Batched 1 holds", ["https://shop.example/one", "https://shop.example/two"], batched[1], "Look closely"),
            ("Batched 2 holds", [], batched[2], None),
        ],
        majority_vote=True,
        num_trials=3,
    )
    e.add_custom_info({"results": [result is True for result in results]}, info_name="batch")
    late = e.add_leaf("late", "After the gate", first)
    await e.verify("Late holds", late)

    second = e.add_parallel("second", "Side by side")
    side = [e.add_leaf(f"side_{n}", f"Side {n}", second) for n in range(2)]
    await asyncio.gather(
        e.verify("Side 0 holds", side[0], majority_vote=False),
        e.verify("Side 1 holds", side[1], num_trials=5),
    )
    if await e.verify("Something nobody keeps", None):
        e.add_custom_node(True, "noted", "What nobody kept was true", second, critical=False)
    await e.close()
    return e.get_summary()

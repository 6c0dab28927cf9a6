"""Script that counts its runs in a module variable."""

from mind2web2 import Evaluator

runs = 0


async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    global runs
    runs += 1
    evaluator = Evaluator()
    evaluator.initialize(
        task_id="counting",
        client=client,
        answer=answer,
        global_cache=cache,
        global_semaphore=semaphore,
        logger=logger,
    )
    leaf = evaluator.add_leaf("leaf", "Something holds")
    await evaluator.verify("Something holds", leaf)
    evaluator.add_custom_info({"runs": runs})
    return evaluator.get_summary()

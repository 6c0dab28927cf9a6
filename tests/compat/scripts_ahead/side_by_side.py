"""Twelve independent claims, verified one after the other."""

from mind2web2 import AggregationStrategy, Evaluator


async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    evaluator = Evaluator()
    evaluator.initialize(
        task_id="side_by_side",
        strategy=AggregationStrategy.PARALLEL,
        agent_name=agent_name,
        answer_name=answer_name,
        client=client,
        answer=answer,
        global_cache=cache,
        global_semaphore=semaphore,
        logger=logger,
        default_model=model,
    )
    for number in range(1, 13):
        step = evaluator.add_leaf(f"step_{number}", f"Step {number} was taken", critical=False)
        await evaluator.verify(f"The answer takes step {number} of the chain", step)
    return evaluator.get_summary()

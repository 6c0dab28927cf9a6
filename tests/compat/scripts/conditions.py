"""Extra prerequisites: leaves, groups, several; asked again when something has changed."""

from mind2web2.eval_toolkit import EvaluatorConfig
from mind2web2.evaluator import Evaluator


async def evaluate_answer(
    *, client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini", **_
) -> dict:
    config = EvaluatorConfig()
    config.default_num_trials = 1
    e = Evaluator()
    root = e.initialize(
        "conditions", agent_name=agent_name, answer_name=answer_name, client=client, answer=answer, global_cache=cache,
        global_semaphore=semaphore, logger=logger, default_model=model, config=config,
    )  # fmt: skip
    basics = e.add_parallel("basics", "What everything rests on", root)
    name = e.add_leaf("name", "The name", basics)
    place = e.add_leaf("place", "The place", basics)
    details = e.add_parallel("details", "What follows from it", root)
    dated = e.add_leaf("dated", "The date", details)
    priced = e.add_leaf("priced", "The price", details)
    rated = e.add_leaf("rated", "The rating", details)

    await e.verify("The name is given", name)
    await e.verify("The date is given", dated, extra_prerequisites=[basics])
    await e.verify("The place is given", place)
    await e.verify("The price is given", priced, extra_prerequisites=[basics, name])
    await e.verify("The rating is given", rated, extra_prerequisites=[name])
    # The place is looked at once more, and what depended on it too.
    if not place.score:
        await e.verify("A place is at least hinted at", place, additional_instruction="Be generous")
        await e.verify("The price is given", priced, extra_prerequisites=[basics])
    return e.get_summary()

"""The same ids again and again, and every question that can be asked about ids and nodes."""

from mind2web2 import Evaluator
from mind2web2.verification_tree import AggregationStrategy, VerificationNode

ITEMS = ("lamp", "lamp", "chair")


async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model):
    e = Evaluator()
    e.initialize(
        "catalogue", AggregationStrategy.PARALLEL, agent_name, answer_name, client=client, answer=answer,
        global_cache=cache, global_semaphore=semaphore, logger=logger, default_model=model,
    )  # fmt: skip
    assert e.check_id_available("item")
    for name in ITEMS:
        item = e.add_sequential("item", f"About the {name}", weight=2.0 if name == "chair" else 1.0)
        e.add_custom_node(name in answer, "named", f"The answer names the {name}", item, critical=False)
        leaf = e.add_leaf("described", f"The {name} is described", item)
        await e.verify(f"The answer describes the {name}", leaf)
    assert not e.check_id_available("item")
    assert e.get_all_node_ids() == [
        "described", "described_1", "described_2", "item", "item_1", "item_2", "named", "named_1", "named_2", "root",
    ]  # fmt: skip
    assert e.get_node_count() == 10
    chair = e.find_node("item_2")
    assert isinstance(chair, VerificationNode)
    assert e.find_node("item_3") is None
    extra = VerificationNode(id="by_hand", desc="Added by hand", score=1.0, status="passed", weight=1.0)
    chair.add_node(extra)
    chair.children[-1].claim = "Added by hand, and described later"
    return e.get_summary()

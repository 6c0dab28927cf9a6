"""No Evaluator: an extractor and a verifier, a tree built by hand, the cache and pages read by the script itself."""

from pydantic import BaseModel

from mind2web2 import create_evaluator
from mind2web2.eval_toolkit import BaseEvaluator, Extractor, Verifier
from mind2web2.utils.cache_filesys import CacheFileSys
from mind2web2.utils.url_tools import URLs, normalize_url_simple, regex_find_urls, remove_utm_parameters
from mind2web2.verification_tree import AggregationStrategy, VerificationNode


class Shop(BaseModel):
    title: str = ""


async def evaluate_answer(
    client, answer, agent_name, answer_name, cache: CacheFileSys, semaphore, logger, model="o4-mini"
):
    extractor, verifier = create_evaluator(
        client=client, task_description="Find a shop", answer=answer, global_cache=cache, global_semaphore=semaphore,
        logger=logger, default_model=model,
    )  # fmt: skip
    assert isinstance(extractor, Extractor)
    assert isinstance(verifier, Verifier)
    assert isinstance(verifier, BaseEvaluator)
    verifier.logger.info("cited: %s", regex_find_urls(answer))
    cited = await extractor.simple_extract("Which addresses?", URLs)
    root = VerificationNode(id="root", desc="Find a shop", strategy=AggregationStrategy.SEQUENTIAL)

    known = [remove_utm_parameters(url) for url in cited.urls if cache.has(url) == "web"]
    stored = VerificationNode(id="stored", desc="A page is stored", critical=True)
    stored.score, stored.status = (1.0, "passed") if known else (0.0, "failed")
    root.add_node(stored)
    text, _ = cache.get_web(known[0], get_screenshot=False)
    shots, again = await verifier.get_page_info(known[0])
    assert text == again
    assert shots is not None

    shop = await extractor.extract_from_url("The title?", known[0], Shop, use_screenshot=False)
    group = VerificationNode(id="claims", desc="The claims")
    root.add_node(group)
    for name in ("title", "page", "pages", "missing"):
        group.add_node(VerificationNode(id=name, desc=f"Claim by {name}"))
    title, page, pages, missing = group.children
    await verifier.simple_verify(f"The shop is called {shop.title}", title)
    await verifier.verify_by_url("It sells lamps", known[0], page, additional_instruction="Any kind of lamp")
    await verifier.verify_by_urls("It is open", cited.urls, pages, num_trials=1)
    assert not await verifier.verify_by_url("It is somewhere", "", missing)
    return {
        "agent_name": agent_name,
        "answer_name": answer_name,
        "final_score": root.compute_score(mutate=True),
        "tree": root.model_dump(),
        "keys": sorted(normalize_url_simple(url) for url in cached_urls(cache)),
    }


def cached_urls(cache: CacheFileSys) -> list[str]:
    assert cache.summary()["total_urls"] == len(cache.get_all_urls())
    return cache.get_all_urls()

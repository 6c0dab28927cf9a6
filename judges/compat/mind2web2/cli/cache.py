"""``mind2web2 cache``: capture the pages that an agent's answers cite, before evaluation."""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections import Counter

from judges.errors import JudgeError
from mind2web2.cli import _common as common
from mind2web2.crawl import DEFAULT_URL_MODELS, Crawl, CrawlOutcome, UrlModels
from mind2web2.llm_client import HarnessError, LLMClient
from mind2web2.metrics import discover_tasks
from mind2web2.submission import list_answer_files
from mind2web2.utils.cache_filesys import CacheIndexError
from mind2web2.utils.logging_setup import log_files
from mind2web2.utils.page_info_retrieval import BatchBrowserManager


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_agent(parser)
    common.add_answers_dir(parser)
    common.add_cache_dir(parser)
    common.add_task_list(parser, or_task=True)
    parser.add_argument(
        "--max-pages", type=common.positive_int, default=5, metavar="N", help="concurrent captures (default: 5)"
    )
    parser.add_argument(
        "--page-timeout",
        type=common.positive_number,
        default=90.0,
        metavar="S",
        help="time limit of a capture in seconds (default: 90)",
    )
    parser.add_argument(
        "--attempts",
        type=common.positive_int,
        default=1,
        metavar="N",
        help="attempts of a capture that ends with an error or a timeout (default: 1)",
    )
    parser.add_argument("--retry-failed", action="store_true", help="capture pages again that failed in earlier runs")
    parser.add_argument("--headless", action="store_true", help="no effect: captures are always headless")
    parser.add_argument("--no-llm", action="store_true", help="find URLs without models")
    parser.add_argument(
        "--url-models",
        type=_model_names,
        default=list(DEFAULT_URL_MODELS),
        metavar="M,M",
        help=f"models that list the URLs of an answer (default: {','.join(DEFAULT_URL_MODELS)})",
    )
    parser.add_argument(
        "--refresh-urls", action="store_true", help="find the URLs again, even if answers and models are the same"
    )
    parser.add_argument(
        "--llm-provider",
        choices=["openai", "azure_openai"],
        default="openai",
        help="provider of the models (default: openai)",
    )
    parser.add_argument(
        "--llm-base-url", metavar="URL", help="address of the model server (default: the provider's own)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Capture the pages and print the number of each outcome. Return 0, even if captures failed."""
    agent, answers = arguments.agent, arguments.answers_dir
    listed = common.read_task_list(arguments.task_list) or discover_tasks(agent, answers)
    tasks = list(dict.fromkeys(arguments.task or [task.task_id for task in listed]))
    with_answers = [task for task in tasks if list_answer_files(answers / agent / task)]
    if not with_answers:
        raise common.CommandError(f"no answers of {agent!r} in {answers / agent}: add <task_id>/answer_<k>.md files")
    for task in tasks:
        if task not in with_answers:
            common.print_note(f"{task}: no answers in {answers / agent / task}")
    client = None if arguments.no_llm else _open_client(arguments)
    with log_files(arguments.cache_dir / "logs", f"cache_{agent}") as logger:
        try:
            outcomes = asyncio.run(_crawl(arguments, with_answers, client, logger))
        except (CacheIndexError, HarnessError) as error:
            raise common.CommandError(str(error)) from error
    counts = ", ".join(f"{outcomes[outcome]} {outcome.value}" for outcome in CrawlOutcome)
    common.print_line(f"{agent}: {_number(outcomes.total(), 'page')} in {_number(len(with_answers), 'task')}: {counts}")
    if any(outcomes[outcome] for outcome in (CrawlOutcome.SKIPPED, CrawlOutcome.FAILED, CrawlOutcome.BLOCKED)):
        common.print_note(
            "Evaluation does not request pages with a recorded failure. To capture them again, use --retry-failed."
        )
    return 0


def _open_client(arguments: argparse.Namespace) -> LLMClient:
    try:
        return LLMClient(arguments.llm_provider, is_async=True, base_url=arguments.llm_base_url)
    except (JudgeError, ValueError) as error:
        raise common.CommandError(
            f"{error}; or use --no-llm to find URLs without models", common.WRONG_USAGE
        ) from error


async def _crawl(
    arguments: argparse.Namespace, tasks: list[str], client: LLMClient | None, logger: logging.Logger
) -> Counter[CrawlOutcome]:
    manager = BatchBrowserManager(
        headless=arguments.headless,
        max_retries=arguments.attempts,
        max_concurrent_pages=arguments.max_pages,
        page_timeout=arguments.page_timeout,
    )
    crawl = Crawl(
        agent=arguments.agent,
        answers_root=arguments.answers_dir,
        cache_root=arguments.cache_dir,
        visitor=manager,
        logger=logger,
        url_models=None if client is None else UrlModels(client, arguments.url_models, logger),
        retry_failed=arguments.retry_failed,
        refresh_urls=arguments.refresh_urls,
        max_pages=arguments.max_pages,
        report=common.print_note,
    )
    try:
        return await crawl.run(tasks)
    finally:
        await manager.stop()


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _model_names(text: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise argparse.ArgumentTypeError("name at least one model, or use --no-llm")
    return names

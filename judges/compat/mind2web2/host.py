"""Host for public task scripts inside the service: runs a script with the service's model and pages.

The objects of the script call the service (``hosted_objects``), usually over RPC from a child process
(``isolated_child``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Any

from cache.backends.documents import Document
from cache.capture import Capture, Observation
from judges.errors import JudgeBug
from judges.isolation.fork_server_pool import ForkServerPool
from judges.isolation.judge_job import job_message, run_isolated
from judges.isolation.rpc_connection import RpcHandler
from judges.isolation.rpc_server import JudgeJob, RpcServer
from judges.isolation.serialization import from_base64, from_json_value, page_to_json, to_json_value
from judges.late_libraries import maps_exceptions
from judges.llm.client import LLMClient
from judges.llm.json_schema import ReplyType
from judges.prompting.rendering import Style
from judges.settling import Progress
from mind2web2.external_services import external_services
from mind2web2.judging import StrictVerifier
from mind2web2.live_browser import LiveBrowser
from mind2web2.llm_client.provider_client import open_provider
from mind2web2.results import eval_date
from mind2web2.script_run import run_job
from mind2web2.task_pages import PageListing, TaskPages

__all__ = ["run_script"]

ENTRY = "mind2web2.isolated_child:run_script"
PRELOADED = (
    "judges.isolation.judge_main",
    "judges.isolation.serialization",
    "mind2web2.isolated_child",
    "mind2web2.eval_runner",
    "mind2web2.prompts.cache_prompts",
    "mind2web2.utils.path_config",
)
"""Modules that the fork server imports before it forks, for public and native task files in Python."""


async def run_script(job: JudgeJob, pages: TaskPages, process_pool: ForkServerPool | None) -> dict[str, Any]:
    """Run a script on an answer and return its summary as JSON values, with ``status`` and ``score``.

    Args:
        job: The script, the answer and the services. The pages are ``pages``, and the votes those of public scripts.
        pages: Pages for the script. What it reads in its task's folder is in ``page_cache`` of the summary.
        process_pool: Runs the script in a child process. None: it runs in this process, which is confined itself.

    Raises:
        JudgeBug: the file cannot be loaded, the script raised (except after a fault), returned no dict, or
            had no tree at the deadline; with the traceback.
        ScriptStopped: the child process exceeded a limit, or did not return.
        JudgeError: the script did not catch an error of the model.
    """
    job = replace(job, evidence_for=pages.evidence_for, style=Style.COMPAT, verifier=StrictVerifier)
    async with aclosing(ToolsRpcServer()) as tools:
        rpc_server = RpcServer(job, provider_client=tools.provider_client)
        handlers = {**rpc_server.handlers(), **tools.handlers(), **page_handlers(pages)}
        if process_pool is None:
            message = {**await asyncio.to_thread(job_message, job), "deadline_s": job.deadline_s}
            result = await run_job(LocalCalls(handlers, job.progress), message, job.logger)
        else:
            result = await run_isolated(process_pool, job, entry=ENTRY, handlers=handlers, eval_date=eval_date())
    if not isinstance(result, dict):
        raise JudgeBug(f"the task script of {job.judge.task!r} returned {type(result).__name__}, not a dict")
    read = pages.record()
    return result if read is None else {**result, "page_cache": read}


@dataclass(frozen=True, slots=True)
class LocalCalls:
    """Calls of a script in the service's own process. ``handlers`` are called directly, by method name."""

    handlers: Mapping[str, RpcHandler]
    progress: Progress | None = None

    async def call(self, name: str, /, **params: Any) -> Any:
        # In a task of its own, as over RPC, because handlers set context variables.
        return await asyncio.create_task(self._reply(name, params))

    def call_blocking(self, name: str, /, **params: Any) -> Any:
        with ThreadPoolExecutor(1, thread_name_prefix="mind2web2-call") as thread:
            return thread.submit(copy_context().run, asyncio.run, self._reply(name, params)).result()

    def notify_progress(self, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(done, total)

    def reply_schema(self, schema: ReplyType) -> ReplyType:
        return schema

    async def _reply(self, name: str, params: Mapping[str, Any]) -> Any:
        return await self.handlers[name](params)


def page_handlers(pages: TaskPages) -> dict[str, RpcHandler]:
    """Return the methods of the script's page cache, by name."""

    async def listing(params: Mapping[str, Any]) -> Any:
        return to_json_value(pages.listing(), PageListing)

    async def capture(params: Mapping[str, Any]) -> Any:
        return to_json_value(pages.read(from_json_value(params.get("key"), str)), Capture | None)

    async def all_read(params: Mapping[str, Any]) -> Any:
        pages.read_all()

    async def failures_read(params: Mapping[str, Any]) -> Any:
        pages.read_failures()

    return {
        "page_listing": listing,
        "page_capture": capture,
        "all_pages_read": all_read,
        "failures_read": failures_read,
    }


MAX_LIVE_PAGES = 5
"""Maximum concurrent captures in the live browser of one script."""
MAPS_METHODS = frozenset(
    {
        "directions",
        "distance_matrix",
        "elevation",
        "elevation_along_path",
        "find_place",
        "geocode",
        "geolocate",
        "nearest_roads",
        "place",
        "places",
        "places_autocomplete",
        "places_nearby",
        "reverse_geocode",
        "snap_to_roads",
        "timezone",
    }
)
"""Methods of ``googlemaps.Client`` that send requests."""


class ToolsRpcServer:
    """RPC methods for the tools of one script. They use the provider and Maps keys of the service.

    ``aclose`` closes the browser and the model clients.
    """

    def __init__(self) -> None:
        self._live: LiveBrowser | None = None
        self._models: dict[str, LLMClient] = {}
        self._maps: dict[tuple[str, float], Any] = {}

    def handlers(self) -> dict[str, RpcHandler]:
        """Return the handlers by method name."""
        return {
            "fetch": self._fetch,
            "document": self._document,
            "observe": self._observe,
            "browser": self._open_browser,
            "maps": self._call_maps,
            "provider": self._open_provider,
        }

    async def aclose(self) -> None:
        if self._live is not None:
            await self._live.aclose()
        for model in self._models.values():
            await model.aclose()

    async def _fetch(self, params: Mapping[str, Any]) -> Any:
        seen = await external_services().fetch(
            from_json_value(params["url"], str), deadline_s=from_json_value(params["deadline_s"], float)
        )
        return await asyncio.to_thread(page_to_json, seen, Observation)

    async def _document(self, params: Mapping[str, Any]) -> Any:
        document = await external_services().read_document(
            from_base64(from_json_value(params["data"], str)),
            from_json_value(params["content_type"], str),
            deadline_s=from_json_value(params["deadline_s"], float),
        )
        return await asyncio.to_thread(page_to_json, replace(document, pdf=None, places=None), Document)

    async def _observe(self, params: Mapping[str, Any]) -> Any:
        seen = await self._live_pages().observe(
            from_json_value(params["url"], str), once=from_json_value(params["once"], bool)
        )
        return await asyncio.to_thread(page_to_json, seen, Observation)

    async def _open_browser(self, _: Mapping[str, Any]) -> Any:
        await self._live_pages().open()

    def _live_pages(self) -> LiveBrowser:
        self._live = self._live or external_services().live_pages(MAX_LIVE_PAGES)
        return self._live

    async def _open_provider(self, params: Mapping[str, Any]) -> Any:
        self.provider_client(from_json_value(params.get("provider"), str))

    def provider_client(self, provider: str) -> LLMClient:
        """Return the client of a provider. Raises ModelNotConfigured."""
        if provider not in self._models:
            self._models[provider] = open_provider(provider)
        return self._models[provider]

    async def _call_maps(self, params: Mapping[str, Any]) -> Any:
        """Return the reply of the Maps API, or the error. Without ``method``, only check that there is a key."""
        method = params.get("method")
        if method is not None and method not in MAPS_METHODS:
            raise JudgeBug(f"{method!r} is not an allowed method of the Maps API")
        return await asyncio.to_thread(
            self._maps_reply,
            from_json_value(params.get("base_url"), str),
            from_json_value(params.get("timeout_s"), float),
            method,
            from_json_value(params.get("args"), list[Any]),
            from_json_value(params.get("keywords"), dict[str, Any]),
        )

    def _maps_reply(
        self, base_url: str, timeout_s: float, method: str | None, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> Any:
        try:
            client = self._maps_client(base_url, timeout_s)
            return {"result": None if method is None else getattr(client, method)(*args, **keywords)}
        except maps_exceptions.ApiError as error:
            return _raised("ApiError", error.status, error.message)
        except maps_exceptions.HTTPError as error:
            return _raised("HTTPError", error.status_code)
        except maps_exceptions.Timeout:
            return _raised("Timeout")
        except maps_exceptions.TransportError as error:
            # Its message contains the requested URL, and with it the key.
            return _raised("TransportError", type(error.base_exception).__name__)
        except (ValueError, TypeError) as error:
            return _raised(type(error).__name__ if type(error) is TypeError else "ValueError", str(error))

    def _maps_client(self, base_url: str, timeout_s: float) -> Any:
        key = (base_url, timeout_s)
        if key not in self._maps:
            self._maps[key] = external_services().maps(base_url=base_url, timeout_s=timeout_s)
        return self._maps[key]


def _raised(kind: str, *args: Any) -> dict[str, Any]:
    return {"raised": kind, "args": list(args)}

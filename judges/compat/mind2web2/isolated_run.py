"""Run of a public task script in a child process: the service's side. The child's side is ``isolated_child``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from cache.backends.documents import Document
from cache.capture import Capture
from judges.errors import JudgeBug
from judges.isolation.fork_server_pool import ForkServerPool
from judges.isolation.judge_job import JudgeJob, run_isolated
from judges.isolation.rpc_connection import RpcHandler
from judges.isolation.rpc_server import RpcServer, RunServices
from judges.isolation.serialization import from_base64, from_json_value, observation_to_json, to_base64, to_json_value
from judges.llm.client import LLMClient
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.prompting.rendering import Style
from judges.registry import Judge
from judges.settling import Progress
from mind2web2.external_services import external_services
from mind2web2.judging import StrictVerifier
from mind2web2.live_browser import LiveBrowser
from mind2web2.llm_client.provider_client import open_provider
from mind2web2.results import eval_date
from mind2web2.script_run import ScriptArguments
from mind2web2.task_pages import PageListing, TaskPages

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


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedScriptRun:
    """Run of one script in a child process."""

    judge: Judge
    arguments: ScriptArguments
    llm: LLMClient
    block_builder: BlockBuilder
    preparer: PagePreparer
    pages: TaskPages

    async def run(
        self,
        process_pool: ForkServerPool,
        *,
        logger: logging.Logger,
        progress: Progress | None,
        deadline_s: float | None,
    ) -> dict[str, Any]:
        """Run the script and return its result. Raises the same errors as ``run_isolated``."""
        arguments = self.arguments
        async with AsyncExitStack() as stack:
            tools = ToolsRpcServer()
            stack.push_async_callback(tools.aclose)
            rpc_server = RpcServer(
                self._services(),
                answer=arguments.answer.text,
                bodies=arguments.blobs,
                provider_client=tools.provider_client,
            )
            judge_job = JudgeJob(
                entry=ENTRY,
                judge=self.judge,
                answer=arguments.answer,
                agent=arguments.agent_name,
                model=arguments.model,
                handlers={**rpc_server.handlers(), **tools.handlers(), **self._page_handlers()},
                deadline_s=deadline_s,
                progress=progress,
                logger=logger,
                extra_fields={"eval_date": eval_date()},
            )
            result = await run_isolated(process_pool, judge_job)
        if not isinstance(result, dict):
            raise JudgeBug(f"the task script of {self.judge.task!r} returned {type(result).__name__}, not a dict")
        return result

    def _page_handlers(self) -> dict[str, RpcHandler]:
        """Return the methods of the script's page cache, by name."""

        async def listing(params: Mapping[str, Any]) -> Any:
            return to_json_value(self.pages.listing(), PageListing)

        async def capture(params: Mapping[str, Any]) -> Any:
            return to_json_value(self.pages.read(from_json_value(params.get("key"), str)), Capture | None)

        async def all_read(params: Mapping[str, Any]) -> Any:
            self.pages.read_all()

        async def failures_read(params: Mapping[str, Any]) -> Any:
            self.pages.read_failures()

        return {
            "page_listing": listing,
            "page_capture": capture,
            "all_pages_read": all_read,
            "failures_read": failures_read,
        }

    def _services(self) -> RunServices:
        return RunServices(
            llm=self.llm,
            block_builder=self.block_builder,
            preparer=self.preparer,
            own_preparer=PagePreparer(self.block_builder),
            evidence_for=self.pages.evidence_for,
            style=Style.COMPAT,
            verifier=StrictVerifier,
        )


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
        self._services = external_services()
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
        seen = await self._services.fetch(
            from_json_value(params["url"], str), deadline_s=from_json_value(params["deadline_s"], float)
        )
        return await asyncio.to_thread(observation_to_json, seen)

    async def _document(self, params: Mapping[str, Any]) -> Any:
        document = await self._services.read_document(
            from_base64(from_json_value(params["data"], str)),
            from_json_value(params["content_type"], str),
            deadline_s=from_json_value(params["deadline_s"], float),
        )
        return await asyncio.to_thread(_document_value, document)

    async def _observe(self, params: Mapping[str, Any]) -> Any:
        return await asyncio.to_thread(
            observation_to_json,
            await self._live_pages().observe(
                from_json_value(params["url"], str), once=from_json_value(params["once"], bool)
            ),
        )

    async def _open_browser(self, _: Mapping[str, Any]) -> Any:
        await self._live_pages().open()

    def _live_pages(self) -> LiveBrowser:
        self._live = self._live or self._services.live_pages(MAX_LIVE_PAGES)
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
        from googlemaps import exceptions  # type: ignore[import-untyped]  # here, because it loads slowly

        try:
            client = self._maps_client(base_url, timeout_s)
            return {"result": None if method is None else getattr(client, method)(*args, **keywords)}
        except exceptions.ApiError as error:
            return _raised("ApiError", error.status, error.message)
        except exceptions.HTTPError as error:
            return _raised("HTTPError", error.status_code)
        except exceptions.Timeout:
            return _raised("Timeout")
        except exceptions.TransportError as error:
            # Its message contains the requested URL, and with it the key.
            return _raised("TransportError", type(error.base_exception).__name__)
        except (ValueError, TypeError) as error:
            return _raised(type(error).__name__ if type(error) is TypeError else "ValueError", str(error))

    def _maps_client(self, base_url: str, timeout_s: float) -> Any:
        key = (base_url, timeout_s)
        if key not in self._maps:
            self._maps[key] = self._services.maps(base_url=base_url, timeout_s=timeout_s)
        return self._maps[key]


def _raised(kind: str, *args: Any) -> dict[str, Any]:
    return {"raised": kind, "args": list(args)}


def _document_value(document: Document) -> dict[str, Any]:
    return {
        "kind": document.kind.value,
        "text": document.text,
        "screenshots": [to_base64(shot) for shot in document.screenshots],
    }

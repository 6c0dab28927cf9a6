"""Run of a public task script in a child process: the child's side. The service's side is ``host``."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

from cache.backends.documents import Document
from cache.capture import Observation
from judges.isolation.judge_main import JobMessage, run_process
from judges.isolation.remote import RemoteModel, RpcClient
from judges.isolation.serialization import page_from_json, to_base64
from judges.late_libraries import maps_exceptions
from judges.llm.client import LLMClient
from mind2web2.environment import set_value
from mind2web2.external_services import use_services
from mind2web2.live_browser import DEADLINE_S, LiveBrowser
from mind2web2.results import EVAL_DATE_VARIABLE
from mind2web2.script_run import run_job
from mind2web2.tool_faults import recorded_maps_fault

_log = logging.getLogger("mind2web2.host")


def run_script(main_socket: socket.socket, side_socket: socket.socket) -> None:
    """Run a public task script. Entry point of ``fork_server.run_script_process``."""
    run_process(main_socket, side_socket, _run)


async def _run(rpc: RpcClient, job: JobMessage) -> Any:
    use_services(RemoteServices(rpc))
    set_value(EVAL_DATE_VARIABLE, job["eval_date"])  # scripts may read the variable themselves
    return await run_job(rpc, job, _log)


class RemoteServices:
    """External services for tools, called through the service."""

    def __init__(self, rpc: RpcClient) -> None:
        self._rpc = rpc
        self._providers: set[str] = set()

    async def fetch(self, url: str, *, deadline_s: float = DEADLINE_S) -> Observation:
        return page_from_json(await self._rpc.call("fetch", url=url, deadline_s=deadline_s), Observation)

    async def read_document(self, data: bytes, content_type: str, *, deadline_s: float) -> Document:
        encoded = await asyncio.to_thread(to_base64, data)
        reply = await self._rpc.call("document", data=encoded, content_type=content_type, deadline_s=deadline_s)
        return page_from_json(reply, Document)

    def live_pages(self, max_pages: int, *, deadline_s: float = DEADLINE_S) -> LiveBrowser:
        return _LivePages(self._rpc)

    def maps(self, *, base_url: str, timeout_s: float) -> Any:
        client = RemoteMaps(self._rpc, base_url, timeout_s)
        client.ask(None)
        return client

    def model(self, provider: str) -> LLMClient | None:
        if provider not in self._providers:
            self._rpc.call_blocking("provider", provider=provider)
            self._providers.add(provider)
        return RemoteModel(self._rpc, provider=provider)


class _LivePages:
    """The service's browser for this script. The service closes it."""

    def __init__(self, rpc: RpcClient) -> None:
        self._rpc = rpc

    async def observe(self, url: str, *, once: bool = False) -> Observation:
        return page_from_json(await self._rpc.call("observe", url=url, once=once), Observation)

    async def open(self) -> None:
        await self._rpc.call("browser")

    async def aclose(self) -> None:
        """Do nothing: other managers of this script may still use the browser. The service closes it after the run."""


class RemoteMaps:
    """Replacement of ``googlemaps.Client`` that calls the service, which has the key."""

    def __init__(self, rpc: RpcClient, base_url: str, timeout_s: float) -> None:
        self._rpc = rpc
        self._which = {"base_url": base_url, "timeout_s": timeout_s}

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_"):
            raise AttributeError(method)
        return lambda *args, **keywords: self._recorded(method, *args, **keywords)

    def _recorded(self, method: str, /, *args: Any, **keywords: Any) -> Any:
        with recorded_maps_fault():
            return self.ask(method, *args, **keywords)

    def ask(self, method: str | None, /, *args: Any, **keywords: Any) -> Any:
        """Call a method of the Maps client. Raises ValueError, TypeError or an error of ``googlemaps.exceptions``."""
        reply = self._rpc.call_blocking("maps", method=method, args=list(args), keywords=keywords, **self._which)
        if "raised" not in reply:
            return reply["result"]
        kinds = {"ValueError": ValueError, "TypeError": TypeError}
        kind = kinds.get(reply["raised"]) or getattr(maps_exceptions, reply["raised"])
        raise kind(*reply["args"])

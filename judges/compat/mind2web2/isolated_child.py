"""Run of a public task script in a child process: the child's side. The service's side is ``isolated_run``."""

from __future__ import annotations

import asyncio
import logging
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from answers.submission import Answer
from cache.backends.documents import Document
from cache.capture import Capture, Observation, PageKind
from judges.extractor import ExtractorBase
from judges.isolation.judge_main import JobMessage, code_in, run_job
from judges.isolation.remote import RemoteClaimJudge, RemoteExtractor, RemoteModel, RemotePages, RpcClient
from judges.isolation.serialization import Content, from_base64, from_json_value, observation_from_json, to_base64
from judges.llm.client import LLMClient
from judges.prompting.rendering import Style
from judges.source_code import judge_import
from judges.verifier import ClaimJudge, judge_named
from mind2web2.environment import set_value
from mind2web2.external_services import use_services
from mind2web2.hosted_objects import HostedClient, judge_of_run
from mind2web2.live_browser import DEADLINE_S, LiveBrowser
from mind2web2.results import EVAL_DATE_VARIABLE
from mind2web2.script_run import ScriptArguments, run_loaded
from mind2web2.task_pages import EvidenceSource, PageListing
from mind2web2.tool_faults import recorded_maps_fault
from mind2web2.utils.load_eval_script import EvaluateAnswer, script_in

_log = logging.getLogger("mind2web2.host")


def run_script(main_socket: socket.socket, side_socket: socket.socket) -> None:
    """Run a public task script. Entry point of ``fork_server.run_script_process``."""
    run_job(main_socket, side_socket, _run)


async def _run(rpc: RpcClient, job: JobMessage) -> Any:
    use_services(RemoteServices(rpc))
    set_value(EVAL_DATE_VARIABLE, job["eval_date"])  # scripts may read the variable themselves
    text = str(job["answer"]["text"])
    arguments = ScriptArguments(
        task_id=str(job["task"]),
        answer=Answer(name=str(job["answer"]["name"]), text=text),
        agent_name=str(job["agent"]),
        model=str(job["model"]),
        blobs=_Bodies(rpc),
    )
    code, path = code_in(job), Path(job["path"])

    async def load() -> EvaluateAnswer:
        with judge_import(f"loading the task script of {arguments.task_id!r} failed"):
            return script_in(code, path)

    client = HostedClient(
        llm=RemoteModel(rpc), judging=_RemoteJudging(rpc, text, arguments.model), progress=rpc.notify_progress
    )
    return await run_loaded(
        arguments,
        load,
        client=client,
        pages=RemoteTaskPages(rpc),
        logger=_log,
        deadline_s=job["deadline_s"],
    )


class RemoteTaskPages(RemotePages):
    """Pages that a run finds in its page cache, listed by the service. Code that reads the cache cannot await."""

    def __init__(self, rpc: RpcClient) -> None:
        super().__init__(rpc)
        self._captures: dict[str, Capture | None] = {}

    def listing(self) -> PageListing:
        """Return all pages that the script finds now."""
        listing: PageListing = from_json_value(self._rpc.call_blocking("page_listing"), PageListing)
        return listing

    def read(self, key: str) -> Capture | None:
        """Return the capture of a listed page, and record that the script has found it."""
        if key not in self._captures:
            reply = self._rpc.call_blocking("page_capture", key=key)
            self._captures[key] = from_json_value(reply, Capture | None)
        return self._captures[key]

    def read_all(self) -> None:
        """Record that the script has read which pages and failures there are."""
        self._rpc.call_blocking("all_pages_read")

    def read_failures(self) -> None:
        """Record that the script has read the recorded failures."""
        self._rpc.call_blocking("failures_read")


@dataclass(frozen=True, slots=True)
class _RemoteJudging:
    """Judges that call the service. ``answer`` is the text that the service already has.

    ``model`` is the judge of the run.
    """

    rpc: RpcClient
    answer: str
    model: str

    def claim_judge(self, model: str) -> ClaimJudge:
        return judge_named(
            judge_of_run(model, self.model),
            lambda name: RemoteClaimJudge(self.rpc, name, answer=self.answer, style=Style.COMPAT),
        )

    def extractor_for(self, model: str) -> ExtractorBase:
        return RemoteExtractor(self.rpc, model, answer=self.answer, style=Style.COMPAT)

    def visible_pages(self, pages: EvidenceSource) -> EvidenceSource:
        return _RemotePageReferences(pages) if isinstance(pages, RemotePages) else pages


@dataclass(frozen=True, slots=True)
class _RemotePageReferences:
    """Pages whose content stays in the service."""

    pages: RemotePages

    async def evidence_for(self, url: str) -> Any:
        return await self.pages.reference(url)


class _Bodies:
    """Store of bodies in the service."""

    def __init__(self, rpc: RpcClient) -> None:
        self._rpc = rpc

    async def get(self, sha256: str) -> bytes:
        """Return a body. Raises BlobError if it is not available."""
        return from_base64(await self._rpc.call("evidence", sha256=sha256, content=Content.BODY))


class RemoteServices:
    """External services for tools, called through the service."""

    def __init__(self, rpc: RpcClient) -> None:
        self._rpc = rpc
        self._providers: set[str] = set()

    async def fetch(self, url: str, *, deadline_s: float = DEADLINE_S) -> Observation:
        return observation_from_json(await self._rpc.call("fetch", url=url, deadline_s=deadline_s))

    async def read_document(self, data: bytes, content_type: str, *, deadline_s: float) -> Document:
        encoded = await asyncio.to_thread(to_base64, data)
        reply = await self._rpc.call("document", data=encoded, content_type=content_type, deadline_s=deadline_s)
        shots = tuple(from_base64(shot) for shot in reply["screenshots"])
        return Document(kind=PageKind(reply["kind"]), text=str(reply["text"]), screenshots=shots)

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
        return observation_from_json(await self._rpc.call("observe", url=url, once=once))

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
        from googlemaps import exceptions  # type: ignore[import-untyped]  # here, because it loads slowly

        kinds = {"ValueError": ValueError, "TypeError": TypeError}
        kind = kinds.get(reply["raised"]) or getattr(exceptions, reply["raised"])
        raise kind(*reply["args"])

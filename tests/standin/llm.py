"""Stand-in for an OpenAI-compatible model server, over HTTP.

It answers ``POST /v1/chat/completions`` with structured output, deterministically: a rule decides each verdict from
the claim in the prompt, and an extraction is filled from the schema. Faults are scripted per call (``faults.py``).
Every call is recorded. It runs in a test (``async with StandInLLM() as server``) or alone: ``python -m
tests.standin.llm --port 8123``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from tests.standin.call import Call, read_call, schema_in_words
from tests.standin.dialects import DIALECTS, events
from tests.standin.faults import Fault
from tests.standin.http import HttpRequest, Reset, read_request, response
from tests.standin.rules import first_sentence_quotes, keyword_rule, minimal_instance

Rule = Callable[[Call], bool]
Quoting = Callable[[Call], list[str]]
Extraction = Mapping[str, Any] | Callable[[Call], Mapping[str, Any]]


class StandInLLM:
    """Stand-in model server. ``delay_s`` is the latency of every reply; ``faults`` apply to one call each, in order.

    ``fault_for`` chooses the fault by call instead, and ``always`` applies to all remaining calls. ``extractions``
    maps the name of a schema to its reply. ``dialect`` names the accepted request format and the reply format
    (``dialects.py``); by default those of OpenAI.
    """

    def __init__(
        self,
        *,
        rule: Rule | None = None,
        quotes: Quoting = first_sentence_quotes,
        extractions: Mapping[str, Extraction] | None = None,
        delay_s: float = 0.0,
        faults: Iterable[Fault | None] = (),
        always: Fault | None = None,
        fault_for: Callable[[Call], Fault | None] | None = None,
        api_key: str | None = None,
        dialect: str | None = None,
    ) -> None:
        self.rule = rule or keyword_rule({})
        self.quotes = quotes
        self.extractions = dict(extractions or {})
        self.delay_s = delay_s
        self.faults: deque[Fault | None] = deque(faults)
        self.always = always
        self.fault_for = fault_for
        self.api_key = api_key
        self.dialect = None if dialect is None else DIALECTS[dialect]
        self.calls: list[Call] = []
        self.in_flight = 0
        self.max_in_flight = 0
        self.models: list[dict[str, object]] | None = None
        """The entries of GET /models; None: the server has no such endpoint."""
        self.port = 0
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._stopping = asyncio.Event()

    @property
    def base_url(self) -> str:
        """Base URL for clients; ends in ``/v1``."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def is_running(self) -> bool:
        return self._server is not None

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=2**20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close all connections, also in the middle of a reply, and wait until no handler runs."""
        if self._server is None:
            return
        self._stopping.set()
        self._server.close()
        for writer in self._connections.values():
            writer.close()
        if self._connections:
            await asyncio.wait(self._connections)
        await self._server.wait_closed()
        self._server = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        this = asyncio.current_task()
        assert this is not None
        self._connections[this] = writer
        try:
            while (request := await read_request(reader)) is not None:
                writer.write(await self._answer(request, writer))
                await writer.drain()
        except Reset:
            writer.transport.abort()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client closed the connection
        finally:
            del self._connections[this]
            writer.close()

    async def _answer(self, request: HttpRequest, writer: asyncio.StreamWriter) -> bytes:
        if request.method == "GET" and request.path == "/healthz":
            return response(200, {"calls": len(self.calls)})
        if request.method == "GET" and request.path.endswith("/models") and self.models is not None:
            if self.api_key not in (None, request.headers.get("authorization", "").removeprefix("Bearer ")):
                return response(401, _error("Incorrect API key provided", "invalid_api_key"))
            return response(200, {"object": "list", "data": self.models})
        if request.method != "POST" or not request.path.split("?")[0].endswith("/chat/completions"):
            return response(404, _error("no such path", "not_found"))
        call = read_call(request, index=len(self.calls))
        self.calls.append(call)
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            return await self._reply(call, writer)
        finally:
            self.in_flight -= 1

    async def _reply(self, call: Call, writer: asyncio.StreamWriter) -> bytes:
        fault = self._fault(call)
        await self._pause(self.delay_s if fault is None or fault.delay_s is None else fault.delay_s)
        if fault is None and self.api_key is not None and call.api_key != self.api_key:
            return response(401, _error("Incorrect API key provided", "invalid_api_key"))
        if fault is not None and fault.reset is not None:
            if fault.reset == "mid_body":
                writer.write(response(200, self._completion(call, Fault()))[:-40])
            elif fault.reset == "not_http":
                writer.write(f"SSH-2.0-test {call.api_key}\r\n".encode())
            await writer.drain()
            raise Reset
        if fault is not None and fault.status is not None:
            error = fault.error_body or _error(fault.message, fault.code, fault.param)
            return response(fault.status, error, fault.headers)
        if fault is not None and fault.raw_body is not None:
            return response(200, fault.raw_body)
        fault = fault or Fault()
        body = self._completion(call, fault)
        is_stream = self.dialect is not None and self.dialect.streams
        return response(200, events(body) if is_stream else body, fault.headers)

    async def _pause(self, seconds: float) -> None:
        if seconds > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)

    def _fault(self, call: Call) -> Fault | None:
        if self.faults:
            return self.faults.popleft()
        if self.fault_for is not None and (found := self.fault_for(call)) is not None:
            return found
        if self.dialect is not None and (refused := self.dialect.refusal(call)) is not None:
            return refused
        return self.always

    def _completion(self, call: Call, fault: Fault) -> dict[str, Any]:
        content = json.dumps(self._content(call), ensure_ascii=False)
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": fault.refusal}
        if fault.refusal is not None:
            message["content"] = None
        elif fault.content is not None:
            message["content"] = fault.content(content) if callable(fault.content) else fault.content
        elif self.dialect is not None:
            message |= self.dialect.shape(content, call)
        return {
            "id": f"chatcmpl-{call.index}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": call.model,
            "choices": [{"index": 0, "finish_reason": fault.finish_reason, "message": message}],
            "usage": {
                "prompt_tokens": call.prompt_tokens,
                "completion_tokens": max(1, len(content) // 4),
                "total_tokens": call.prompt_tokens + max(1, len(content) // 4),
            },
        }

    def _content(self, call: Call) -> Any:
        schema = self._schema(call)
        if schema is None:
            return {"text": "ok"} if self.dialect is None else {"unexpected": 1}
        fields = schema.get("properties", {})
        if "result" in fields and "reasoning" in fields:
            verdict: dict[str, Any] = {"reasoning": "by rule of the stand-in", "result": self.rule(call)}
            return verdict | ({"quotes": self.quotes(call)} if "quotes" in fields else {})
        canned = self.extractions.get(call.schema_name or str(schema.get("title")))
        if canned is None:
            return minimal_instance(schema)
        return dict(canned(call) if callable(canned) else canned)

    def _schema(self, call: Call) -> Mapping[str, Any] | None:
        """Return the schema that the model knows: from the request format if its server enforces that, else from the
        prompt.
        """
        if self.dialect is None or call.form in self.dialect.honours:
            return call.schema or schema_in_words(call.text)
        schema_in_prompt = schema_in_words(call.text)
        asks_for_verdict = '"result", true if the claim holds' in call.text
        return {"properties": {"reasoning": {}, "result": {}, "quotes": {}}} if asks_for_verdict else schema_in_prompt


def _error(message: str, code: str | None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": code, "code": code, "param": param}}


async def _main(port: int, delay_s: float, seed: int, pass_rate: float, dialect: str | None) -> None:
    from tests.standin.rules import seeded_rule

    server = StandInLLM(rule=seeded_rule(seed, pass_rate), delay_s=delay_s, dialect=dialect)
    await server.start(port)
    print(f"stand-in model at {server.base_url}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--port", type=int, default=8123)
    options.add_argument("--delay", type=float, default=0.0, help="seconds of latency for each reply")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--pass-rate", type=float, default=0.8)
    options.add_argument("--dialect", choices=sorted(DIALECTS), help="how the server wants to be asked and replies")
    options.add_argument("--list-dialects", action="store_true", help="print the names of the dialects and exit")
    given = options.parse_args()
    if given.list_dialects:
        print("\n".join(f"{each.name:<22} {each.about}" for each in DIALECTS.values()))
    else:
        asyncio.run(_main(given.port, given.delay, given.seed, given.pass_rate, given.dialect))

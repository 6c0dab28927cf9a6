"""Cost of running judge files in child processes: start of children and RPC round trips."""

from __future__ import annotations

import asyncio
import socket
import time
from dataclasses import dataclass

import psutil

from judges.isolation.fork_server_pool import ForkServerPool
from judges.isolation.remote import RpcClient
from judges.isolation.rpc_connection import RpcConnection
from mind2web2.isolated_run import PRELOADED

CHILDREN = 100
ROUND_TRIPS = 20_000
AT_ONCE = 50
ENTRY = "tests.bench.isolation:call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Children:
    """``start_s``: seconds until the fork server is ready. The others are for children started one after the other."""

    start_s: float
    wall_s: float
    cpu_ms_each: float


def call(main_socket: socket.socket, side_socket: socket.socket) -> None:
    """Run in the child: make concurrent calls."""
    asyncio.run(_call(RpcClient(main_socket, side_socket)))


async def _call(client: RpcClient) -> None:
    order = await client.open()

    async def some(count: int) -> None:
        for _ in range(count):
            await client.call("echo", text="a claim of ordinary length, and what is said about it")

    await asyncio.gather(*(some(order["calls"] // AT_ONCE) for _ in range(AT_ONCE)))
    await client.end({"done": True})


async def children() -> Children:
    """Start children that do nothing."""
    process_pool = ForkServerPool(PRELOADED)
    try:
        began = time.perf_counter()
        await process_pool.wait_until_running()
        start_s = time.perf_counter() - began
        server = psutil.Process(process_pool.server_pid)
        before, spent, began = server.cpu_times(), 0.0, time.perf_counter()
        for _ in range(CHILDREN):
            async with process_pool.spawn("builtins:print") as child:
                spent += (await child.wait_for_exit(patience_s=5)).cpu_s
        wall_s, after = time.perf_counter() - began, server.cpu_times()
        spent += after.user + after.system - before.user - before.system
        return Children(start_s=start_s, wall_s=wall_s, cpu_ms_each=1000 * spent / CHILDREN)
    finally:
        await process_pool.aclose()


async def round_trips_per_s() -> float:
    """Return calls per second from a child to the service and back."""
    process_pool = ForkServerPool((*PRELOADED, "tests.bench.isolation"))

    async def echo(what: object) -> object:
        return what

    try:
        await process_pool.wait_until_running()
        async with process_pool.spawn(ENTRY) as child:
            connection = RpcConnection(
                child.main_socket, child.side_socket, handlers={"echo": echo}, on_notification={}
            )
            began = time.perf_counter()
            last = await connection.run({"calls": ROUND_TRIPS})
            took_s = time.perf_counter() - began
            connection.close()
        if last is None:
            raise RuntimeError("the child ended before its calls did")
        return ROUND_TRIPS / took_s
    finally:
        await process_pool.aclose()

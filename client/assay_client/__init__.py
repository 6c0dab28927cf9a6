"""Typed client of the assay HTTP API, blocking and asyncio, for programs and for the command line.

    with Client("http://127.0.0.1:8000") as server:
        receipt = server.submit("my-agent", "karrow_visit", [("answer_1.md", text)])
        for job in server.wait(receipt.job_ids):
            print(server.get_result(job.result_id)["final_score"])

Each operation of the API has a method with the name of its ``operationId``. Lists are iterators over all pages. The
types of requests and responses are in ``assay_client.types``. The package imports nothing else of assay and reads no
environment variables: URL and API key are arguments.
"""

from assay_client.asynchronous import AsyncClient
from assay_client.errors import (
    ApiError,
    ClientError,
    InvalidArgument,
    ServerUnreachable,
    UnexpectedReply,
    WaitTimeout,
)
from assay_client.synchronous import Client
from assay_client.values import Event, Job, JobError, JobRef, Progress, Receipt
from assay_client.wire import DEFAULT_URL

__all__ = [
    "DEFAULT_URL",
    "ApiError",
    "AsyncClient",
    "Client",
    "ClientError",
    "Event",
    "InvalidArgument",
    "Job",
    "JobError",
    "JobRef",
    "Progress",
    "Receipt",
    "ServerUnreachable",
    "UnexpectedReply",
    "WaitTimeout",
]

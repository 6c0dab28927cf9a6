"""Typed client of the assay HTTP API, blocking and asyncio, for programs and for the command line.

    with Client("http://127.0.0.1:8000") as server:
        receipt = server.submit("my-agent", "yu_lineage", [("answer_1.md", text)])
        for job in server.wait(receipt.job_ids):
            print(server.result(job.result_id)["final_score"])

It imports nothing else of assay and reads no environment variables: URL and API key are arguments.
"""

from app.client.asynchronous import AsyncClient
from app.client.errors import ApiError, ClientError, ServerUnreachable, UnexpectedReply, WaitTimeout
from app.client.sessions import AsyncSuiteSession, Feedback, Question, SuiteSession
from app.client.synchronous import Client
from app.client.values import Event, Job, JobError, JobRef, Progress, Receipt
from app.client.wire import DEFAULT_URL

__all__ = [
    "DEFAULT_URL",
    "ApiError",
    "AsyncClient",
    "AsyncSuiteSession",
    "Client",
    "ClientError",
    "Event",
    "Feedback",
    "Job",
    "JobError",
    "JobRef",
    "Progress",
    "Question",
    "Receipt",
    "ServerUnreachable",
    "SuiteSession",
    "UnexpectedReply",
    "WaitTimeout",
]

"""Route that loads the demo: serve its website and submit the shipped answers, as ``assay demo`` does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request

from app.access.keys import Caller
from app.api.access import SubmitterDep
from app.api.jobs import first_of, jobs_ended
from app.api.models import AcceptedArchiveOut
from app.api.problems import Problem
from app.api.submissions import check_tasks_exist, receipts_json
from app.demo.run import MODEL, shipped_submissions
from app.demo.site import DemoPortTaken, DemoSite
from app.service import Service

router = APIRouter(prefix="/v1/demo", tags=["submissions"])


@router.post("", status_code=202, response_model=AcceptedArchiveOut)
async def load_demo(request: Request, caller: SubmitterDep) -> dict[str, Any]:
    """Submit the shipped answers of three agents, judged without a model. They cite a website that the service serves.

    Needs a worker in the process of the service, because only this process may open the website.
    """
    loader: DemoLoader = request.app.state.demo  # created by app.server.application
    return await loader.load(caller)


class DemoLoader:
    """Serves the demo website while jobs of the demo run."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._serving: asyncio.Task[None] | None = None

    async def load(self, caller: Caller) -> dict[str, Any]:
        """Serve the website, submit the answers and return the accepted submissions.

        Raises:
            Problem: The demo is being judged, its port is taken, or the service has no worker (409).
        """
        if self._serving is not None and not self._serving.done():
            raise Problem(409, "DEMO_RUNNING", "The demo is being judged; wait until its jobs have ended")
        if self._service.worker is None:
            detail = "This process has no worker that could judge the demo; run `assay demo` on the command line"
            raise Problem(409, "NO_WORKER", detail)
        submissions = [replace(one, model=MODEL) for one in await asyncio.to_thread(shipped_submissions)]
        await check_tasks_exist(self._service, submissions)
        async with AsyncExitStack() as stack:
            try:
                site = await stack.enter_async_context(DemoSite())
            except DemoPortTaken as error:
                raise Problem(409, "DEMO_PORT_TAKEN", str(error)) from error
            # Pages of this address can be captured only while this process itself listens there.
            stack.enter_context(self._service.runtime.allow_egress(site.egress_allow))
            accepted = await self._service.intake.accept(submissions, owner=caller.owner, respond=receipts_json)
            jobs = [job["id"] for submission in accepted["submissions"] for job in submission["jobs"]]
            self._serving = asyncio.create_task(self._serve(stack.pop_all(), jobs), name="demo")
        return accepted

    async def _serve(self, site: AsyncExitStack, job_ids: Sequence[str]) -> None:
        """Keep the website open until the jobs have ended or the service stops."""
        async with site:
            await first_of(jobs_ended(self._service, job_ids), self._service.stopping.wait())

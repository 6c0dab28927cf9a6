"""A method for each operation of the API. Generated from the OpenAPI document by `make client`. Do not edit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from assay_client.sending import AsyncSender, Sender
from assay_client.values import Event
from assay_client.wire import given, path

if TYPE_CHECKING:
    from assay_client import types


class Operations(Sender):
    """Methods of the blocking client."""

    def create_submission(
        self, body: types.SubmissionIn | Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> types.AcceptedSubmissionOut:
        """Submit the answers of one agent to one task.

        Each answer becomes a job.
        """
        return self._json("POST", "/v1/submissions", headers=given(**{"Idempotency-Key": idempotency_key}), json=body)

    def list_submissions(
        self,
        *,
        status: types.JobStatus | None = None,
        include: Sequence[Literal["jobs", "metadata"]] | None = None,
        limit: int | None = None,
        agent: str | None = None,
        task_id: str | None = None,
        run: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Iterator[types.SubmissionSummaryOut]:
        """List submissions of answers, newest first."""
        return self._items(
            "/v1/submissions",
            given(
                status=status,
                include=include,
                limit=limit,
                agent=agent,
                task_id=task_id,
                run=run,
                since=since,
                until=until,
            ),
        )

    def submit_archive(
        self,
        file: bytes,
        *,
        idempotency_key: str | None = None,
        model: str | None = None,
        priority: int | None = None,
        budget_usd: float | None = None,
        evidence_policy: Literal["captured", "fallback", "supplied"] | None = None,
    ) -> types.AcceptedArchiveOut:
        """Submit the answers of many tasks in one archive: all of them or none.

        The budget applies to each submission.
        """
        return self._json(
            "POST",
            "/v1/submissions/archive",
            headers=given(**{"Idempotency-Key": idempotency_key}),
            files={"file": file},
            data=given(model=model, priority=priority, budget_usd=budget_usd, evidence_policy=evidence_policy),
        )

    def get_submission(self, submission_id: str, *, wait: float | None = None) -> types.SubmissionOut:
        """Return a submission with the status of its jobs.

        With `wait`, return when all of them have ended.
        """
        return self._json("GET", path("/v1/submissions/{}", submission_id), params=given(wait=wait))

    def update_submission(
        self, submission_id: str, body: types.SubmissionChangeIn | Mapping[str, Any]
    ) -> types.SubmissionOut:
        """Change the budget.

        If it is raised, jobs that are paused for this budget continue within 2 seconds.
        """
        return self._json("PATCH", path("/v1/submissions/{}", submission_id), json=body)

    def delete_submission(self, submission_id: str, *, force: bool | None = None) -> types.DeletedOut:
        """Delete a submission with its jobs, results and answers.

        Captured pages and the usage of models are kept.
        """
        return self._json("DELETE", path("/v1/submissions/{}", submission_id), params=given(force=force))

    def cancel_submission(self, submission_id: str) -> types.SubmissionOut:
        """Cancel the unfinished jobs of a submission."""
        return self._json("POST", path("/v1/submissions/{}/cancel", submission_id))

    def list_jobs(
        self,
        *,
        status: types.JobStatus | None = None,
        submission_id: str | None = None,
        kind: types.JobKind | None = None,
        superseded: bool | None = None,
        limit: int | None = None,
        agent: str | None = None,
        task_id: str | None = None,
        run: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Iterator[types.ListedJobOut]:
        """List jobs, newest first."""
        return self._items(
            "/v1/jobs",
            given(
                status=status,
                submission_id=submission_id,
                kind=kind,
                superseded=superseded,
                limit=limit,
                agent=agent,
                task_id=task_id,
                run=run,
                since=since,
                until=until,
            ),
        )

    def follow_jobs(self, *, after: str | None = None) -> Iterator[Event]:
        """Follow all jobs by server-sent events.

        Changes of a job within a second are one event with the whole job. The stream contains no earlier changes:
        read the list of jobs after each event ``open``.
        """
        return self._events("/v1/jobs/events", after)

    def get_job(self, job_id: str, *, wait: float | None = None) -> types.JobOut:
        """Return one job with its status, progress and error.

        With `wait`, return when it has ended.
        """
        return self._json("GET", path("/v1/jobs/{}", job_id), params=given(wait=wait))

    def cancel_job(self, job_id: str) -> types.JobOut:
        """Cancel a job.

        Captures and model requests in progress stop immediately.
        """
        return self._json("POST", path("/v1/jobs/{}/cancel", job_id))

    def retry_job(self, job_id: str) -> types.JobOut:
        """Queue a finished or paused job again."""
        return self._json("POST", path("/v1/jobs/{}/retry", job_id))

    def follow_job(self, job_id: str, *, after: str | None = None) -> Iterator[Event]:
        """Follow a job by server-sent events.

        Each event contains the whole job. The stream ends when the job has ended.
        """
        return self._events(path("/v1/jobs/{}/events", job_id), after)

    def list_results(
        self,
        *,
        status: Literal["complete", "incomplete"] | None = None,
        limit: int | None = None,
        agent: str | None = None,
        task_id: str | None = None,
        run: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Iterator[types.Result]:
        """List results, newest first."""
        return self._items(
            "/v1/results",
            given(status=status, limit=limit, agent=agent, task_id=task_id, run=run, since=since, until=until),
        )

    def get_result(self, result_id: str) -> types.Result | dict[str, Any]:
        """Return one result as it was stored, byte for byte, followed by its overrides."""
        return self._json("GET", path("/v1/results/{}", result_id))

    def lint_result(self, result_id: str) -> Iterator[types.LintFindingOut]:
        """Probable mistakes of the rubric that the result was scored with, for the author of the task."""
        return self._items(path("/v1/results/{}/lint", result_id), given())

    def list_agent_history(self, agent: str, *, limit: int | None = None) -> Iterator[types.ResultOrigin]:
        """List the results of an agent without their trees, newest first."""
        return self._items(path("/v1/agents/{}/history", agent), given(limit=limit))

    def get_result_origin(self, result_id: str) -> types.ResultOrigin:
        """Return the job and submission of a result."""
        return self._json("GET", path("/v1/results/{}/origin", result_id))

    def get_result_answer(self, result_id: str) -> str:
        """Return the judged answer unchanged, byte for byte."""
        return (self._send("GET", path("/v1/results/{}/answer", result_id))).text

    def get_result_schema(self) -> types.JsonSchemaOut:
        """Return the JSON Schema of a result."""
        return self._json("GET", "/v1/schema/result.json")

    def get_agent_summary(
        self, agent: str, *, run: str | None = None, judge: str | None = None, mix_judges: bool | None = None
    ) -> types.AgentSummaryOut:
        """Return the averages of an agent over tasks and answers, with confidence intervals and counts of unjudged
        answers.

        Answers of different judges are refused (409 MIXED_JUDGES, with the averages of each judge), unless
        `mix_judges`.
        """
        return self._json(
            "GET", path("/v1/agents/{}/summary", agent), params=given(run=run, judge=judge, mix_judges=mix_judges)
        )

    def get_leaderboard(
        self, *, judge: str | None = None, mix_judges: bool | None = None
    ) -> Iterator[types.LeaderboardRowOut]:
        """List the averages of all agents, highest score first.

        Answers of different judges are refused (409 MIXED_JUDGES, with the averages of each judge), unless
        `mix_judges`. With `judge`, agents without an answer of this judge are left out.
        """
        return self._items("/v1/leaderboard", given(judge=judge, mix_judges=mix_judges))

    def list_task_scores(self, *, task_id: str | None = None, agent: str | None = None) -> Iterator[types.TaskScoreOut]:
        """List the mean score of each run of each agent at each task by each judge, the best of each task first."""
        return self._items("/v1/task-scores", given(task_id=task_id, agent=agent))

    def list_mean_scores(
        self, *, task_id: Sequence[str] | None = None, agent: str | None = None, judge: str | None = None
    ) -> Iterator[types.MeanScoreOut]:
        """List the mean score of each run of each agent by each judge over the tasks that all of them have."""
        return self._items("/v1/mean-scores", given(task_id=task_id, agent=agent, judge=judge))

    def create_override(self, result_id: str, body: types.OverrideIn | Mapping[str, Any]) -> types.OverrideOut:
        """Override a leaf of a result with an outcome, a reason and your name.

        The verdict and the scores do not change.
        """
        return self._json("POST", path("/v1/results/{}/overrides", result_id), json=body)

    def list_overrides(self, result_id: str) -> Iterator[types.OverrideOut]:
        """List the overrides of a result, oldest first."""
        return self._items(path("/v1/results/{}/overrides", result_id), given())

    def withdraw_override(
        self, result_id: str, override_id: str, body: types.WithdrawalIn | Mapping[str, Any]
    ) -> types.OverrideOut:
        """Withdraw an override with a reason and your name.

        The previous override of the leaf is in force again.
        """
        return self._json("POST", path("/v1/results/{}/overrides/{}/withdraw", result_id, override_id), json=body)

    def list_reviews(
        self, *, agent: str | None = None, task_id: str | None = None, limit: int | None = None
    ) -> Iterator[types.ReviewOut]:
        """List overrides, newest first."""
        return self._items("/v1/reviews", given(agent=agent, task_id=task_id, limit=limit))

    def get_agreement(
        self, *, agent: str | None = None, task_id: str | None = None, model: str | None = None
    ) -> types.AgreementOut:
        """Return the agreement of the judge and people on overridden leaves, in total and by task and model."""
        return self._json("GET", "/v1/reviews/agreement", params=given(agent=agent, task_id=task_id, model=model))

    def export_reviews(self, *, agent: str | None = None, task_id: str | None = None) -> str:
        """Export the newest override of each person on each leaf as JSON Lines.

        docs/meta-eval.md describes the format.
        """
        return (self._send("GET", "/v1/reviews/export", params=given(agent=agent, task_id=task_id))).text

    def search_names(self, q: str, *, limit: int | None = None) -> Iterator[types.FoundOut]:
        """Find agents, tasks, runs, results and captured pages by a part of their names, ids or URLs."""
        return self._items("/v1/search", given(q=q, limit=limit))

    def list_tasks(
        self, *, status: Literal["ready", "broken"] | None = None, limit: int | None = None
    ) -> Iterator[types.TaskOut]:
        """List tasks, sorted by name.

        The cursor is a name.
        """
        return self._items("/v1/tasks", given(status=status, limit=limit))

    def get_task(self, task_id: str) -> types.TaskOut:
        """Return one task and its judge."""
        return self._json("GET", path("/v1/tasks/{}", task_id))

    def list_page_changes(
        self, *, task_id: str | None = None, url: str | None = None, limit: int | None = None
    ) -> Iterator[types.PageChangeOut]:
        """List page changes, newest first."""
        return self._items("/v1/pages/changes", given(task_id=task_id, url=url, limit=limit))

    def create_page_change(self, body: types.PageChangeIn | Mapping[str, Any]) -> types.PageChangeOut:
        """Add, edit, delete, flag, unflag, review or unreview a cited URL."""
        return self._json("POST", "/v1/pages/changes", json=body)

    def undo_page_change(
        self, change_id: str, *, reason: str | None = None, by: str | None = None
    ) -> types.PageChangeOut:
        """Undo a change.

        The undo is stored as a further change.
        """
        return self._json("POST", path("/v1/pages/changes/{}/undo", change_id), params=given(reason=reason, by=by))

    def list_cited_urls(
        self,
        *,
        task_id: str | None = None,
        agent: str | None = None,
        needs_work: bool | None = None,
        deleted: bool | None = None,
        url: str | None = None,
        limit: int | None = None,
    ) -> Iterator[types.CitedUrlOut]:
        """List cited URLs.

        URLs that need work come first, sorted by the number of leaves that depend on them in the newest results.
        """
        return self._items(
            "/v1/pages/urls",
            given(task_id=task_id, agent=agent, needs_work=needs_work, deleted=deleted, url=url, limit=limit),
        )

    def list_page_tasks(self, *, agent: str | None = None) -> Iterator[types.TaskUrlCounts]:
        """List all tasks that have cited URLs, with counts: those with most leaves waiting first."""
        return self._items("/v1/pages/tasks", given(agent=agent))

    def list_page_dependents(self, url: Sequence[str]) -> types.DependentsOut:
        """Return the answers and leaves that depend on the pages of these URLs, and the cost of their last judging."""
        return self._json("GET", "/v1/pages/dependents", params=given(url=url))

    def list_pages(
        self,
        *,
        task_id: str | None = None,
        agent: str | None = None,
        problem: bool | types.CaptureOutcome | None = None,
        limit: int | None = None,
    ) -> Iterator[types.PageOut]:
        """List captures, newest first.

        With a task or an agent, list the captures that its results used.
        """
        return self._items("/v1/pages", given(task_id=task_id, agent=agent, problem=problem, limit=limit))

    def get_page(self, page_id: str) -> types.PageOut:
        """Return one capture."""
        return self._json("GET", path("/v1/pages/{}", page_id))

    def get_page_text(self, page_id: str) -> str:
        """Return the visible text of the page, as judges see it."""
        return (self._send("GET", path("/v1/pages/{}/text", page_id))).text

    def get_page_screenshot(self, page_id: str, *, n: int | None = None) -> bytes:
        """Return screenshot ``n`` of the page, counted from the top."""
        return (self._send("GET", path("/v1/pages/{}/screenshot", page_id), params=given(n=n))).content

    def get_page_places(self, page_id: str) -> dict[str, Any]:
        """Return the position of each text line in the screenshots: `[start, end, n, left, top, width, height]`.

        `start` and `end` are offsets in the text. The box is in screenshot `n`; its full width and height are
        `unit` each. Uploaded pages and old captures may have no positions.
        """
        return self._json("GET", path("/v1/pages/{}/places", page_id))

    def get_closest_passage(self, page_id: str, claim: str) -> types.ClosestPassageOut:
        """Return the passage of the page's text that shares most words, names and numbers with a claim.

        Code finds it, not a model. It shows what the page says on the subject of a refuted claim, and proves
        nothing.
        """
        return self._json("GET", path("/v1/pages/{}/closest", page_id), params=given(claim=claim))

    def get_page_pdf(self, page_id: str) -> bytes:
        """Return the PDF document as a download."""
        return (self._send("GET", path("/v1/pages/{}/pdf", page_id))).content

    def get_page_html(self, page_id: str) -> str:
        """Return the stored HTML as a download.

        The response headers stop a browser from running its scripts.
        """
        return (self._send("GET", path("/v1/pages/{}/html", page_id))).text

    def recapture_page(self, page_id: str) -> types.PageOut:
        """Capture the URL of the page again.

        Later judging of your answers uses the new capture if it is evidence.
        """
        return self._json("POST", path("/v1/pages/{}/recapture", page_id))

    def upload_page_content(
        self,
        page_id: str,
        content: bytes,
        content_type: Literal["application/pdf", "text/html", "text/plain", "image/png", "image/jpeg"],
    ) -> types.PageOut:
        """Upload the content of the page: PDF, MHTML, HTML, text, an image, or text and an image."""
        return self._json(
            "PUT", path("/v1/pages/{}/content", page_id), content=content, headers={"Content-Type": content_type}
        )

    def list_providers(self) -> types.ProviderListOut:
        """List all providers by name, and warnings about the default model."""
        return self._json("GET", "/v1/providers")

    def pause_provider(self, provider: str, body: types.PauseIn | Mapping[str, Any]) -> types.ProviderOut:
        """Stop all requests to a provider.

        It takes effect in all workers within 2 seconds. Jobs that need it wait.
        """
        return self._json("POST", path("/v1/providers/{}/pause", provider), json=body)

    def resume_provider(self, provider: str) -> types.ProviderOut:
        """Allow requests to a provider again.

        Waiting jobs continue.
        """
        return self._json("POST", path("/v1/providers/{}/resume", provider))

    def create_estimate(self, body: types.SubmissionIn | Mapping[str, Any]) -> types.EstimateOut:
        """Estimate calls, tokens and cost of a submission.

        Calls no model, captures no page and stores nothing.
        """
        return self._json("POST", "/v1/estimates", json=body)

    def get_usage(
        self,
        *,
        by: Sequence[types.By] | None = None,
        agent: str | None = None,
        task_id: str | None = None,
        model: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> types.UsageListOut:
        """Return calls, tokens and cost of models by group.

        Failed and cancelled jobs are included.
        """
        return self._json(
            "GET", "/v1/usage", params=given(by=by, agent=agent, task_id=task_id, model=model, since=since, until=until)
        )

    def create_webhook(self, body: types.WebhookIn | Mapping[str, Any]) -> types.NewWebhookOut:
        """Register an address that is called when jobs of your owner end.

        The response contains the signing key once.
        """
        return self._json("POST", "/v1/webhooks", json=body)

    def list_webhooks(self, *, limit: int | None = None) -> Iterator[types.WebhookOut]:
        """List webhooks, newest first."""
        return self._items("/v1/webhooks", given(limit=limit))

    def delete_webhook(self, webhook_id: str) -> types.WebhookOut:
        """Delete a webhook with its deliveries.

        What is queued is not sent.
        """
        return self._json("DELETE", path("/v1/webhooks/{}", webhook_id))

    def test_webhook(self, webhook_id: str) -> types.DeliveryOut:
        """Send the event `webhook.test`."""
        return self._json("POST", path("/v1/webhooks/{}/test", webhook_id))

    def list_webhook_deliveries(self, webhook_id: str, *, limit: int | None = None) -> Iterator[types.DeliveryOut]:
        """List the deliveries of a webhook, newest first."""
        return self._items(path("/v1/webhooks/{}/deliveries", webhook_id), given(limit=limit))

    def get_health(self) -> types.HealthOut:
        """Report that the process is alive and whether its browsers run in a sandbox."""
        return self._json("GET", "/healthz")

    def get_readiness(self) -> types.ReadinessOut:
        """Report whether the service can accept work, with the result of each check."""
        return self._json("GET", "/readyz")

    def get_metrics(self) -> str:
        """Return the metrics in the Prometheus text format."""
        return (self._send("GET", "/metrics")).text

    def list_task_answers(self, task_id: str, *, limit: int | None = None) -> Iterator[types.ScoredAnswerOut]:
        """List the newest result of each answer to a task, without the trees, newest first."""
        return self._items(path("/v1/tasks/{}/answers", task_id), given(limit=limit))

    def get_task_file(self, task_id: str) -> types.TaskFileOut:
        """Return the YAML file of a task with its rubric tree and its errors."""
        return self._json("GET", path("/v1/tasks/{}/file", task_id))

    def load_demo(self) -> types.AcceptedArchiveOut:
        """Submit the shipped answers of three agents, judged without a model.

        They cite a website that the service serves. Needs a worker in the process of the service, because only this
        process may open the website.
        """
        return self._json("POST", "/v1/demo")

    def create_check(
        self, body: types.CheckIn | Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> types.AcceptedCheckOut:
        """Check whether the sources of a report support its statements.

        The check becomes a job.
        """
        return self._json("POST", "/v1/checks", headers=given(**{"Idempotency-Key": idempotency_key}), json=body)

    def list_checks(self, *, limit: int | None = None) -> Iterator[types.CheckSummaryOut]:
        """List the checks, newest first, without their documents."""
        return self._items("/v1/checks", given(limit=limit))

    def get_check(self, check_id: str) -> types.CheckOut:
        """Return a check, with its document if it has a result."""
        return self._json("GET", path("/v1/checks/{}", check_id))

    def get_check_schema(self) -> types.JsonSchemaOut:
        """Return the JSON Schema of the document of a check."""
        return self._json("GET", "/v1/schema/check.json")

    def compare(self, a: str, b: Sequence[str], *, mix_judges: bool | None = None) -> types.ComparisonOut:
        """Compare each ``b`` with ``a`` task by task: differences, their significance, and which leaves flipped and
        why.

        Answers of different judges are refused (409 MIXED_JUDGES), unless `mix_judges`.
        """
        return self._json("GET", "/v1/compare", params=given(a=a, b=b, mix_judges=mix_judges))

    def list_flips(self, a: str, b: str, *, limit: int | None = None) -> Iterator[types.Flip]:
        """List all leaves whose outcome differs between the two sides, with the causes.

        The cursor is an offset.
        """
        return self._items("/v1/compare/flips", given(a=a, b=b, limit=limit))

    def create_rescore(
        self, body: types.RescoreIn | Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> types.AcceptedRescoreOut:
        """Judge stored answers of the caller again, with the current judges and stored pages.

        Verdicts whose inputs did not change are reused without a model request.
        """
        return self._json("POST", "/v1/rescores", headers=given(**{"Idempotency-Key": idempotency_key}), json=body)

    def get_rescore(self, rescore_id: str) -> types.RescoreOut:
        """Return a rescore: old and new scores per answer and per agent, flipped leaves and ranks."""
        return self._json("GET", path("/v1/rescores/{}", rescore_id))

    def cancel_rescore(self, rescore_id: str) -> types.RescoreSummaryOut:
        """Cancel the unfinished jobs of a rescore.

        Their answers keep their earlier results.
        """
        return self._json("POST", path("/v1/rescores/{}/cancel", rescore_id))

    def create_mind2web_run(
        self, body: types.Mind2WebRunIn | Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> types.AcceptedRunOut:
        """Start a run of a model over Mind2Web, or score predictions from a file."""
        return self._json(
            "POST", "/v1/suites/mind2web/runs", headers=given(**{"Idempotency-Key": idempotency_key}), json=body
        )

    def create_mm_mind2web_run(
        self, body: types.MultimodalRunIn | Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> types.AcceptedRunOut:
        """Start a run of a model over Multimodal-Mind2Web~, or score answers from a file."""
        return self._json(
            "POST", "/v1/suites/mm-mind2web/runs", headers=given(**{"Idempotency-Key": idempotency_key}), json=body
        )

    def list_suite_runs(self, suite: types.SuiteName, *, limit: int | None = None) -> Iterator[types.RunOut]:
        """List the runs of a suite, newest first."""
        return self._items(path("/v1/suites/{}/runs", suite), given(limit=limit))

    def compare_suite_runs(
        self, suite: types.SuiteName, a: str, b: str, *, seed: int | None = None
    ) -> types.RunComparisonOut:
        """Compare two finished runs, paired by step and task.

        Differences are B - A.
        """
        return self._json("GET", path("/v1/suites/{}/compare", suite), params=given(a=a, b=b, seed=seed))

    def get_suite_run(self, suite: types.SuiteName, run_id: str) -> types.RunOut:
        """Return one run: its options, status and current figures."""
        return self._json("GET", path("/v1/suites/{}/runs/{}", suite, run_id))

    def list_suite_steps(
        self,
        suite: types.SuiteName,
        run_id: str,
        *,
        status: types.StepStatus | None = None,
        task_id: str | None = None,
        success: bool | None = None,
        limit: int | None = None,
    ) -> Iterator[types.StepSummaryOut]:
        """List the judged steps of a run in data order."""
        return self._items(
            path("/v1/suites/{}/runs/{}/steps", suite, run_id),
            given(status=status, task_id=task_id, success=success, limit=limit),
        )

    def get_suite_step(self, suite: types.SuiteName, run_id: str, position: int) -> types.StepOut:
        """Return one step: the request, the reply, the gold answer and the page."""
        return self._json("GET", path("/v1/suites/{}/runs/{}/steps/{}", suite, run_id, position))

    def get_suite_screenshot(self, suite: types.SuiteName, run_id: str, position: int) -> bytes:
        """Return the screenshot of a step with boxes around the gold elements (green) and the picked one (orange)."""
        return (self._send("GET", path("/v1/suites/{}/runs/{}/steps/{}/screenshot", suite, run_id, position))).content


class AsyncOperations(AsyncSender):
    """Methods of the asyncio client."""

    async def create_submission(
        self, body: types.SubmissionIn | Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> types.AcceptedSubmissionOut:
        """Submit the answers of one agent to one task.

        Each answer becomes a job.
        """
        return await self._json(
            "POST", "/v1/submissions", headers=given(**{"Idempotency-Key": idempotency_key}), json=body
        )

    def list_submissions(
        self,
        *,
        status: types.JobStatus | None = None,
        include: Sequence[Literal["jobs", "metadata"]] | None = None,
        limit: int | None = None,
        agent: str | None = None,
        task_id: str | None = None,
        run: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> AsyncIterator[types.SubmissionSummaryOut]:
        """List submissions of answers, newest first."""
        return self._items(
            "/v1/submissions",
            given(
                status=status,
                include=include,
                limit=limit,
                agent=agent,
                task_id=task_id,
                run=run,
                since=since,
                until=until,
            ),
        )

    async def submit_archive(
        self,
        file: bytes,
        *,
        idempotency_key: str | None = None,
        model: str | None = None,
        priority: int | None = None,
        budget_usd: float | None = None,
        evidence_policy: Literal["captured", "fallback", "supplied"] | None = None,
    ) -> types.AcceptedArchiveOut:
        """Submit the answers of many tasks in one archive: all of them or none.

        The budget applies to each submission.
        """
        return await self._json(
            "POST",
            "/v1/submissions/archive",
            headers=given(**{"Idempotency-Key": idempotency_key}),
            files={"file": file},
            data=given(model=model, priority=priority, budget_usd=budget_usd, evidence_policy=evidence_policy),
        )

    async def get_submission(self, submission_id: str, *, wait: float | None = None) -> types.SubmissionOut:
        """Return a submission with the status of its jobs.

        With `wait`, return when all of them have ended.
        """
        return await self._json("GET", path("/v1/submissions/{}", submission_id), params=given(wait=wait))

    async def update_submission(
        self, submission_id: str, body: types.SubmissionChangeIn | Mapping[str, Any]
    ) -> types.SubmissionOut:
        """Change the budget.

        If it is raised, jobs that are paused for this budget continue within 2 seconds.
        """
        return await self._json("PATCH", path("/v1/submissions/{}", submission_id), json=body)

    async def delete_submission(self, submission_id: str, *, force: bool | None = None) -> types.DeletedOut:
        """Delete a submission with its jobs, results and answers.

        Captured pages and the usage of models are kept.
        """
        return await self._json("DELETE", path("/v1/submissions/{}", submission_id), params=given(force=force))

    async def cancel_submission(self, submission_id: str) -> types.SubmissionOut:
        """Cancel the unfinished jobs of a submission."""
        return await self._json("POST", path("/v1/submissions/{}/cancel", submission_id))

    def list_jobs(
        self,
        *,
        status: types.JobStatus | None = None,
        submission_id: str | None = None,
        kind: types.JobKind | None = None,
        superseded: bool | None = None,
        limit: int | None = None,
        agent: str | None = None,
        task_id: str | None = None,
        run: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> AsyncIterator[types.ListedJobOut]:
        """List jobs, newest first."""
        return self._items(
            "/v1/jobs",
            given(
                status=status,
                submission_id=submission_id,
                kind=kind,
                superseded=superseded,
                limit=limit,
                agent=agent,
                task_id=task_id,
                run=run,
                since=since,
                until=until,
            ),
        )

    def follow_jobs(self, *, after: str | None = None) -> AsyncIterator[Event]:
        """Follow all jobs by server-sent events.

        Changes of a job within a second are one event with the whole job. The stream contains no earlier changes:
        read the list of jobs after each event ``open``.
        """
        return self._events("/v1/jobs/events", after)

    async def get_job(self, job_id: str, *, wait: float | None = None) -> types.JobOut:
        """Return one job with its status, progress and error.

        With `wait`, return when it has ended.
        """
        return await self._json("GET", path("/v1/jobs/{}", job_id), params=given(wait=wait))

    async def cancel_job(self, job_id: str) -> types.JobOut:
        """Cancel a job.

        Captures and model requests in progress stop immediately.
        """
        return await self._json("POST", path("/v1/jobs/{}/cancel", job_id))

    async def retry_job(self, job_id: str) -> types.JobOut:
        """Queue a finished or paused job again."""
        return await self._json("POST", path("/v1/jobs/{}/retry", job_id))

    def follow_job(self, job_id: str, *, after: str | None = None) -> AsyncIterator[Event]:
        """Follow a job by server-sent events.

        Each event contains the whole job. The stream ends when the job has ended.
        """
        return self._events(path("/v1/jobs/{}/events", job_id), after)

    def list_results(
        self,
        *,
        status: Literal["complete", "incomplete"] | None = None,
        limit: int | None = None,
        agent: str | None = None,
        task_id: str | None = None,
        run: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> AsyncIterator[types.Result]:
        """List results, newest first."""
        return self._items(
            "/v1/results",
            given(status=status, limit=limit, agent=agent, task_id=task_id, run=run, since=since, until=until),
        )

    async def get_result(self, result_id: str) -> types.Result | dict[str, Any]:
        """Return one result as it was stored, byte for byte, followed by its overrides."""
        return await self._json("GET", path("/v1/results/{}", result_id))

    def lint_result(self, result_id: str) -> AsyncIterator[types.LintFindingOut]:
        """Probable mistakes of the rubric that the result was scored with, for the author of the task."""
        return self._items(path("/v1/results/{}/lint", result_id), given())

    def list_agent_history(self, agent: str, *, limit: int | None = None) -> AsyncIterator[types.ResultOrigin]:
        """List the results of an agent without their trees, newest first."""
        return self._items(path("/v1/agents/{}/history", agent), given(limit=limit))

    async def get_result_origin(self, result_id: str) -> types.ResultOrigin:
        """Return the job and submission of a result."""
        return await self._json("GET", path("/v1/results/{}/origin", result_id))

    async def get_result_answer(self, result_id: str) -> str:
        """Return the judged answer unchanged, byte for byte."""
        return (await self._send("GET", path("/v1/results/{}/answer", result_id))).text

    async def get_result_schema(self) -> types.JsonSchemaOut:
        """Return the JSON Schema of a result."""
        return await self._json("GET", "/v1/schema/result.json")

    async def get_agent_summary(
        self, agent: str, *, run: str | None = None, judge: str | None = None, mix_judges: bool | None = None
    ) -> types.AgentSummaryOut:
        """Return the averages of an agent over tasks and answers, with confidence intervals and counts of unjudged
        answers.

        Answers of different judges are refused (409 MIXED_JUDGES, with the averages of each judge), unless
        `mix_judges`.
        """
        return await self._json(
            "GET", path("/v1/agents/{}/summary", agent), params=given(run=run, judge=judge, mix_judges=mix_judges)
        )

    def get_leaderboard(
        self, *, judge: str | None = None, mix_judges: bool | None = None
    ) -> AsyncIterator[types.LeaderboardRowOut]:
        """List the averages of all agents, highest score first.

        Answers of different judges are refused (409 MIXED_JUDGES, with the averages of each judge), unless
        `mix_judges`. With `judge`, agents without an answer of this judge are left out.
        """
        return self._items("/v1/leaderboard", given(judge=judge, mix_judges=mix_judges))

    def list_task_scores(
        self, *, task_id: str | None = None, agent: str | None = None
    ) -> AsyncIterator[types.TaskScoreOut]:
        """List the mean score of each run of each agent at each task by each judge, the best of each task first."""
        return self._items("/v1/task-scores", given(task_id=task_id, agent=agent))

    def list_mean_scores(
        self, *, task_id: Sequence[str] | None = None, agent: str | None = None, judge: str | None = None
    ) -> AsyncIterator[types.MeanScoreOut]:
        """List the mean score of each run of each agent by each judge over the tasks that all of them have."""
        return self._items("/v1/mean-scores", given(task_id=task_id, agent=agent, judge=judge))

    async def create_override(self, result_id: str, body: types.OverrideIn | Mapping[str, Any]) -> types.OverrideOut:
        """Override a leaf of a result with an outcome, a reason and your name.

        The verdict and the scores do not change.
        """
        return await self._json("POST", path("/v1/results/{}/overrides", result_id), json=body)

    def list_overrides(self, result_id: str) -> AsyncIterator[types.OverrideOut]:
        """List the overrides of a result, oldest first."""
        return self._items(path("/v1/results/{}/overrides", result_id), given())

    async def withdraw_override(
        self, result_id: str, override_id: str, body: types.WithdrawalIn | Mapping[str, Any]
    ) -> types.OverrideOut:
        """Withdraw an override with a reason and your name.

        The previous override of the leaf is in force again.
        """
        return await self._json("POST", path("/v1/results/{}/overrides/{}/withdraw", result_id, override_id), json=body)

    def list_reviews(
        self, *, agent: str | None = None, task_id: str | None = None, limit: int | None = None
    ) -> AsyncIterator[types.ReviewOut]:
        """List overrides, newest first."""
        return self._items("/v1/reviews", given(agent=agent, task_id=task_id, limit=limit))

    async def get_agreement(
        self, *, agent: str | None = None, task_id: str | None = None, model: str | None = None
    ) -> types.AgreementOut:
        """Return the agreement of the judge and people on overridden leaves, in total and by task and model."""
        return await self._json("GET", "/v1/reviews/agreement", params=given(agent=agent, task_id=task_id, model=model))

    async def export_reviews(self, *, agent: str | None = None, task_id: str | None = None) -> str:
        """Export the newest override of each person on each leaf as JSON Lines.

        docs/meta-eval.md describes the format.
        """
        return (await self._send("GET", "/v1/reviews/export", params=given(agent=agent, task_id=task_id))).text

    def search_names(self, q: str, *, limit: int | None = None) -> AsyncIterator[types.FoundOut]:
        """Find agents, tasks, runs, results and captured pages by a part of their names, ids or URLs."""
        return self._items("/v1/search", given(q=q, limit=limit))

    def list_tasks(
        self, *, status: Literal["ready", "broken"] | None = None, limit: int | None = None
    ) -> AsyncIterator[types.TaskOut]:
        """List tasks, sorted by name.

        The cursor is a name.
        """
        return self._items("/v1/tasks", given(status=status, limit=limit))

    async def get_task(self, task_id: str) -> types.TaskOut:
        """Return one task and its judge."""
        return await self._json("GET", path("/v1/tasks/{}", task_id))

    def list_page_changes(
        self, *, task_id: str | None = None, url: str | None = None, limit: int | None = None
    ) -> AsyncIterator[types.PageChangeOut]:
        """List page changes, newest first."""
        return self._items("/v1/pages/changes", given(task_id=task_id, url=url, limit=limit))

    async def create_page_change(self, body: types.PageChangeIn | Mapping[str, Any]) -> types.PageChangeOut:
        """Add, edit, delete, flag, unflag, review or unreview a cited URL."""
        return await self._json("POST", "/v1/pages/changes", json=body)

    async def undo_page_change(
        self, change_id: str, *, reason: str | None = None, by: str | None = None
    ) -> types.PageChangeOut:
        """Undo a change.

        The undo is stored as a further change.
        """
        return await self._json(
            "POST", path("/v1/pages/changes/{}/undo", change_id), params=given(reason=reason, by=by)
        )

    def list_cited_urls(
        self,
        *,
        task_id: str | None = None,
        agent: str | None = None,
        needs_work: bool | None = None,
        deleted: bool | None = None,
        url: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[types.CitedUrlOut]:
        """List cited URLs.

        URLs that need work come first, sorted by the number of leaves that depend on them in the newest results.
        """
        return self._items(
            "/v1/pages/urls",
            given(task_id=task_id, agent=agent, needs_work=needs_work, deleted=deleted, url=url, limit=limit),
        )

    def list_page_tasks(self, *, agent: str | None = None) -> AsyncIterator[types.TaskUrlCounts]:
        """List all tasks that have cited URLs, with counts: those with most leaves waiting first."""
        return self._items("/v1/pages/tasks", given(agent=agent))

    async def list_page_dependents(self, url: Sequence[str]) -> types.DependentsOut:
        """Return the answers and leaves that depend on the pages of these URLs, and the cost of their last judging."""
        return await self._json("GET", "/v1/pages/dependents", params=given(url=url))

    def list_pages(
        self,
        *,
        task_id: str | None = None,
        agent: str | None = None,
        problem: bool | types.CaptureOutcome | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[types.PageOut]:
        """List captures, newest first.

        With a task or an agent, list the captures that its results used.
        """
        return self._items("/v1/pages", given(task_id=task_id, agent=agent, problem=problem, limit=limit))

    async def get_page(self, page_id: str) -> types.PageOut:
        """Return one capture."""
        return await self._json("GET", path("/v1/pages/{}", page_id))

    async def get_page_text(self, page_id: str) -> str:
        """Return the visible text of the page, as judges see it."""
        return (await self._send("GET", path("/v1/pages/{}/text", page_id))).text

    async def get_page_screenshot(self, page_id: str, *, n: int | None = None) -> bytes:
        """Return screenshot ``n`` of the page, counted from the top."""
        return (await self._send("GET", path("/v1/pages/{}/screenshot", page_id), params=given(n=n))).content

    async def get_page_places(self, page_id: str) -> dict[str, Any]:
        """Return the position of each text line in the screenshots: `[start, end, n, left, top, width, height]`.

        `start` and `end` are offsets in the text. The box is in screenshot `n`; its full width and height are
        `unit` each. Uploaded pages and old captures may have no positions.
        """
        return await self._json("GET", path("/v1/pages/{}/places", page_id))

    async def get_closest_passage(self, page_id: str, claim: str) -> types.ClosestPassageOut:
        """Return the passage of the page's text that shares most words, names and numbers with a claim.

        Code finds it, not a model. It shows what the page says on the subject of a refuted claim, and proves
        nothing.
        """
        return await self._json("GET", path("/v1/pages/{}/closest", page_id), params=given(claim=claim))

    async def get_page_pdf(self, page_id: str) -> bytes:
        """Return the PDF document as a download."""
        return (await self._send("GET", path("/v1/pages/{}/pdf", page_id))).content

    async def get_page_html(self, page_id: str) -> str:
        """Return the stored HTML as a download.

        The response headers stop a browser from running its scripts.
        """
        return (await self._send("GET", path("/v1/pages/{}/html", page_id))).text

    async def recapture_page(self, page_id: str) -> types.PageOut:
        """Capture the URL of the page again.

        Later judging of your answers uses the new capture if it is evidence.
        """
        return await self._json("POST", path("/v1/pages/{}/recapture", page_id))

    async def upload_page_content(
        self,
        page_id: str,
        content: bytes,
        content_type: Literal["application/pdf", "text/html", "text/plain", "image/png", "image/jpeg"],
    ) -> types.PageOut:
        """Upload the content of the page: PDF, MHTML, HTML, text, an image, or text and an image."""
        return await self._json(
            "PUT", path("/v1/pages/{}/content", page_id), content=content, headers={"Content-Type": content_type}
        )

    async def list_providers(self) -> types.ProviderListOut:
        """List all providers by name, and warnings about the default model."""
        return await self._json("GET", "/v1/providers")

    async def pause_provider(self, provider: str, body: types.PauseIn | Mapping[str, Any]) -> types.ProviderOut:
        """Stop all requests to a provider.

        It takes effect in all workers within 2 seconds. Jobs that need it wait.
        """
        return await self._json("POST", path("/v1/providers/{}/pause", provider), json=body)

    async def resume_provider(self, provider: str) -> types.ProviderOut:
        """Allow requests to a provider again.

        Waiting jobs continue.
        """
        return await self._json("POST", path("/v1/providers/{}/resume", provider))

    async def create_estimate(self, body: types.SubmissionIn | Mapping[str, Any]) -> types.EstimateOut:
        """Estimate calls, tokens and cost of a submission.

        Calls no model, captures no page and stores nothing.
        """
        return await self._json("POST", "/v1/estimates", json=body)

    async def get_usage(
        self,
        *,
        by: Sequence[types.By] | None = None,
        agent: str | None = None,
        task_id: str | None = None,
        model: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> types.UsageListOut:
        """Return calls, tokens and cost of models by group.

        Failed and cancelled jobs are included.
        """
        return await self._json(
            "GET", "/v1/usage", params=given(by=by, agent=agent, task_id=task_id, model=model, since=since, until=until)
        )

    async def create_webhook(self, body: types.WebhookIn | Mapping[str, Any]) -> types.NewWebhookOut:
        """Register an address that is called when jobs of your owner end.

        The response contains the signing key once.
        """
        return await self._json("POST", "/v1/webhooks", json=body)

    def list_webhooks(self, *, limit: int | None = None) -> AsyncIterator[types.WebhookOut]:
        """List webhooks, newest first."""
        return self._items("/v1/webhooks", given(limit=limit))

    async def delete_webhook(self, webhook_id: str) -> types.WebhookOut:
        """Delete a webhook with its deliveries.

        What is queued is not sent.
        """
        return await self._json("DELETE", path("/v1/webhooks/{}", webhook_id))

    async def test_webhook(self, webhook_id: str) -> types.DeliveryOut:
        """Send the event `webhook.test`."""
        return await self._json("POST", path("/v1/webhooks/{}/test", webhook_id))

    def list_webhook_deliveries(self, webhook_id: str, *, limit: int | None = None) -> AsyncIterator[types.DeliveryOut]:
        """List the deliveries of a webhook, newest first."""
        return self._items(path("/v1/webhooks/{}/deliveries", webhook_id), given(limit=limit))

    async def get_health(self) -> types.HealthOut:
        """Report that the process is alive and whether its browsers run in a sandbox."""
        return await self._json("GET", "/healthz")

    async def get_readiness(self) -> types.ReadinessOut:
        """Report whether the service can accept work, with the result of each check."""
        return await self._json("GET", "/readyz")

    async def get_metrics(self) -> str:
        """Return the metrics in the Prometheus text format."""
        return (await self._send("GET", "/metrics")).text

    def list_task_answers(self, task_id: str, *, limit: int | None = None) -> AsyncIterator[types.ScoredAnswerOut]:
        """List the newest result of each answer to a task, without the trees, newest first."""
        return self._items(path("/v1/tasks/{}/answers", task_id), given(limit=limit))

    async def get_task_file(self, task_id: str) -> types.TaskFileOut:
        """Return the YAML file of a task with its rubric tree and its errors."""
        return await self._json("GET", path("/v1/tasks/{}/file", task_id))

    async def load_demo(self) -> types.AcceptedArchiveOut:
        """Submit the shipped answers of three agents, judged without a model.

        They cite a website that the service serves. Needs a worker in the process of the service, because only this
        process may open the website.
        """
        return await self._json("POST", "/v1/demo")

    async def create_check(
        self, body: types.CheckIn | Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> types.AcceptedCheckOut:
        """Check whether the sources of a report support its statements.

        The check becomes a job.
        """
        return await self._json("POST", "/v1/checks", headers=given(**{"Idempotency-Key": idempotency_key}), json=body)

    def list_checks(self, *, limit: int | None = None) -> AsyncIterator[types.CheckSummaryOut]:
        """List the checks, newest first, without their documents."""
        return self._items("/v1/checks", given(limit=limit))

    async def get_check(self, check_id: str) -> types.CheckOut:
        """Return a check, with its document if it has a result."""
        return await self._json("GET", path("/v1/checks/{}", check_id))

    async def get_check_schema(self) -> types.JsonSchemaOut:
        """Return the JSON Schema of the document of a check."""
        return await self._json("GET", "/v1/schema/check.json")

    async def compare(self, a: str, b: Sequence[str], *, mix_judges: bool | None = None) -> types.ComparisonOut:
        """Compare each ``b`` with ``a`` task by task: differences, their significance, and which leaves flipped and
        why.

        Answers of different judges are refused (409 MIXED_JUDGES), unless `mix_judges`.
        """
        return await self._json("GET", "/v1/compare", params=given(a=a, b=b, mix_judges=mix_judges))

    def list_flips(self, a: str, b: str, *, limit: int | None = None) -> AsyncIterator[types.Flip]:
        """List all leaves whose outcome differs between the two sides, with the causes.

        The cursor is an offset.
        """
        return self._items("/v1/compare/flips", given(a=a, b=b, limit=limit))

    async def create_rescore(
        self, body: types.RescoreIn | Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> types.AcceptedRescoreOut:
        """Judge stored answers of the caller again, with the current judges and stored pages.

        Verdicts whose inputs did not change are reused without a model request.
        """
        return await self._json(
            "POST", "/v1/rescores", headers=given(**{"Idempotency-Key": idempotency_key}), json=body
        )

    async def get_rescore(self, rescore_id: str) -> types.RescoreOut:
        """Return a rescore: old and new scores per answer and per agent, flipped leaves and ranks."""
        return await self._json("GET", path("/v1/rescores/{}", rescore_id))

    async def cancel_rescore(self, rescore_id: str) -> types.RescoreSummaryOut:
        """Cancel the unfinished jobs of a rescore.

        Their answers keep their earlier results.
        """
        return await self._json("POST", path("/v1/rescores/{}/cancel", rescore_id))

    async def create_mind2web_run(
        self, body: types.Mind2WebRunIn | Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> types.AcceptedRunOut:
        """Start a run of a model over Mind2Web, or score predictions from a file."""
        return await self._json(
            "POST", "/v1/suites/mind2web/runs", headers=given(**{"Idempotency-Key": idempotency_key}), json=body
        )

    async def create_mm_mind2web_run(
        self, body: types.MultimodalRunIn | Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> types.AcceptedRunOut:
        """Start a run of a model over Multimodal-Mind2Web~, or score answers from a file."""
        return await self._json(
            "POST", "/v1/suites/mm-mind2web/runs", headers=given(**{"Idempotency-Key": idempotency_key}), json=body
        )

    def list_suite_runs(self, suite: types.SuiteName, *, limit: int | None = None) -> AsyncIterator[types.RunOut]:
        """List the runs of a suite, newest first."""
        return self._items(path("/v1/suites/{}/runs", suite), given(limit=limit))

    async def compare_suite_runs(
        self, suite: types.SuiteName, a: str, b: str, *, seed: int | None = None
    ) -> types.RunComparisonOut:
        """Compare two finished runs, paired by step and task.

        Differences are B - A.
        """
        return await self._json("GET", path("/v1/suites/{}/compare", suite), params=given(a=a, b=b, seed=seed))

    async def get_suite_run(self, suite: types.SuiteName, run_id: str) -> types.RunOut:
        """Return one run: its options, status and current figures."""
        return await self._json("GET", path("/v1/suites/{}/runs/{}", suite, run_id))

    def list_suite_steps(
        self,
        suite: types.SuiteName,
        run_id: str,
        *,
        status: types.StepStatus | None = None,
        task_id: str | None = None,
        success: bool | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[types.StepSummaryOut]:
        """List the judged steps of a run in data order."""
        return self._items(
            path("/v1/suites/{}/runs/{}/steps", suite, run_id),
            given(status=status, task_id=task_id, success=success, limit=limit),
        )

    async def get_suite_step(self, suite: types.SuiteName, run_id: str, position: int) -> types.StepOut:
        """Return one step: the request, the reply, the gold answer and the page."""
        return await self._json("GET", path("/v1/suites/{}/runs/{}/steps/{}", suite, run_id, position))

    async def get_suite_screenshot(self, suite: types.SuiteName, run_id: str, position: int) -> bytes:
        """Return the screenshot of a step with boxes around the gold elements (green) and the picked one (orange)."""
        return (
            await self._send("GET", path("/v1/suites/{}/runs/{}/steps/{}/screenshot", suite, run_id, position))
        ).content

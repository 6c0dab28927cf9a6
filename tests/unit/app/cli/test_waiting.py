"""Commands that wait for the server: what they print at the end, and after Ctrl-C that the server continues."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from app.cli.submit import follow
from app.console.errors import Interrupted
from app.features.rescore.cli import _wait
from assay_client import Job

URL = "http://127.0.0.1:8000"


class InterruptedClient:
    """Client of a server on which a job never ends. Waiting for it is interrupted."""

    def wait(self, labels: object, **options: object) -> None:
        raise KeyboardInterrupt

    def get_rescore(self, rescore_id: str) -> dict[str, Any]:
        return {"answers": [{"job_id": "job_1", "agent": "otter", "task_id": "sky", "answer_name": "answer_1"}]}


def test_waiting_for_jobs():
    with pytest.raises(Interrupted, match=r"continue on the server\. .* again: assay admin jobs --wait job_1 job_2$"):
        follow(InterruptedClient(), {"job_1": "a", "job_2": "b"}, timeout_s=None, as_json=False)  # type: ignore[arg-type]


def test_waiting_for_a_rescore():
    with pytest.raises(Interrupted, match=r"To see it: assay results rescore r_1; to stop it: .* r_1 --cancel$"):
        _wait(InterruptedClient(), "r_1", None)  # type: ignore[arg-type]


class FinishedClient:
    """Client of a server on which an answer and a citation check have ended without some verdicts."""

    url = URL

    def wait(self, labels: object, **options: object) -> list[Job]:
        known = {"status": "succeeded", "agent": "otter", "task_id": "sky", "answer": "a.md", "progress": {}}
        return [
            Job.from_json({**known, "id": f"job_{kind}", "kind": kind, "result_id": f"res_{kind}"})
            for kind in ("answer", "check")
        ]

    def get_result(self, result_id: str) -> dict[str, Any]:
        score = {"value": None, "low": 0.25, "high": 0.75}
        return {"id": result_id, "status": "incomplete", "score": score, "final_score": 0.25}


def test_links_lead_to_the_page_of_the_job_except_for_answers(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(typer.Exit) as ended:
        follow(FinishedClient(), {"job_answer": "a", "job_check": "b"}, timeout_s=None, as_json=False)  # type: ignore[arg-type]
    assert ended.value.exit_code == 3
    links = [line for line in capsys.readouterr().out.splitlines() if line.startswith(URL)]
    assert links == [f"{URL}/results/res_answer", f"{URL}/jobs/job_check"]

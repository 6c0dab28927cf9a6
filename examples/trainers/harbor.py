"""Verifier of a Harbor task: writes ``reward.json`` and ``reward-details.json``. Copy this file into ``tests/`` of it.

    python3 /tests/harbor.py --task-id karrow_visit /app/answer.md

``reward.json`` has only the key ``reward``, because Harbor reads every key of it as a reward. The details have both
scores.

It needs only the standard library. ``REWARD_URL`` and ``ASSAY_API_KEY`` come from ``[verifier.env]`` of the task. If
the reward is masked, no reward file is written and the exit code is 1: Harbor then records an error and no reward.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

_MARGIN_S = 30.0


def main(arguments: list[str] | None = None) -> int:
    """Verify an answer and write its reward. Return the exit code."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("answer", type=Path, help="file with the answer of the agent")
    rubric = options.add_mutually_exclusive_group(required=True)
    rubric.add_argument("--task-id", help="task of the service")
    rubric.add_argument("--rubric", type=Path, help="task file as JSON")
    options.add_argument("--out", type=Path, default=Path("/logs/verifier/reward.json"))
    options.add_argument("--deadline-s", type=float, default=120.0)
    given = options.parse_args(arguments)
    details = given.out.with_name("reward-details.json")
    for old in (given.out, details):  # a reward that the agent wrote does not count
        old.unlink(missing_ok=True)
    body: dict[str, Any] = {"deadline_s": given.deadline_s}
    try:
        body["answer"] = given.answer.read_text("utf-8-sig")
        if given.rubric is None:
            body["task_id"] = given.task_id
        else:
            body["rubric"] = json.loads(given.rubric.read_text("utf-8-sig"))
        found = _verify(body, timeout_s=given.deadline_s + _MARGIN_S)
    except HTTPError as error:
        return _failed(f"{error}: {error.read().decode(errors='replace')}")
    except (URLError, OSError, ValueError) as error:
        return _failed(str(error))
    if found["mask"]:
        return _failed(f"masked: {found['mask_reason']}: {found['mask_detail']}")
    scores = {kind: score["value"] for kind, score in found["scores"].items() if score["value"] is not None}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    details.write_text(json.dumps(scores), "utf-8")
    given.out.write_text(json.dumps({"reward": found["reward"]}), "utf-8")
    return 0


def _verify(body: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
    url = os.environ.get("REWARD_URL", "http://127.0.0.1:8000").rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"REWARD_URL is {url!r}: expected an http or https URL")
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("ASSAY_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    request = Request(f"{url}/v1/verify", json.dumps(body).encode(), headers)  # noqa: S310 - the scheme is checked
    with build_opener(ProxyHandler({})).open(request, timeout=timeout_s) as response:
        found: dict[str, Any] = json.load(response)
    return found


def _failed(reason: str) -> int:
    sys.stderr.write(f"no reward: {reason}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())

"""Summaries of the public toolkit. Expected numbers were calculated by hand from its contract."""

from __future__ import annotations

from judges import agent_figures
from judges.agent_figures import ScoredAnswer


def scored(task_id: str, k: int, score: float, words: int = 0) -> ScoredAnswer:
    return ScoredAnswer(task_id=task_id, answer_name=f"answer_{k}.md", score=score, words=words)


TWO_TASKS = (
    scored("bridge", 1, 1.0, words=100),
    scored("bridge", 2, 0.5, words=50),
    scored("bridge", 3, 0.0, words=10),
    scored("apple", 1, 1 / 3, words=101),
    scored("apple", 2, 0.0, words=20),
)


def test_task_summary_is_sorted_and_any_positive_score_has_status_success() -> None:
    assert agent_figures.task_summary({"answer_2.md": 0.25, "answer_1.md": 1.0, "answer_3.md": 0.0}) == [
        {"answer_name": "answer_1.md", "score": 1.0, "status": "success", "success": True},
        {"answer_name": "answer_2.md", "score": 0.25, "status": "success", "success": False},
        {"answer_name": "answer_3.md", "score": 0.0, "status": "failed", "success": False},
    ]


def test_agent_summary_averages_over_tasks_then_over_runs() -> None:
    got = agent_figures.public_summary("otter", TWO_TASKS)

    # runs: 1 -> (1 + 1/3) / 2 = 2/3, 2 -> (0.5 + 0) / 2 = 0.25, 3 -> 0; mean 0.30556, deviation 0.27498
    assert got["avg_score"] == 0.3056
    assert got["avg_score_std"] == 0.275
    # successes: 1/2, 0, 0; mean 1/6, deviation sqrt(2)/12
    assert got["success_rate"] == 0.1667
    assert got["success_rate_std"] == 0.2357
    # words: 100.5, 35, 10; mean 48.5, deviation 38.16
    assert got["avg_answer_word_count"] == 48.5
    assert got["avg_answer_word_count_std"] == 38.2
    assert got["per_run"] == {
        "answer_1.md": {"num_tasks": 2, "avg_score": 0.6667, "success_rate": 0.5, "avg_word_count": 100.5},
        "answer_2.md": {"num_tasks": 2, "avg_score": 0.25, "success_rate": 0.0, "avg_word_count": 35.0},
        "answer_3.md": {"num_tasks": 1, "avg_score": 0.0, "success_rate": 0.0, "avg_word_count": 10.0},
    }


def test_agent_summary_lists_every_task_with_its_answers() -> None:
    got = agent_figures.public_summary("otter", TWO_TASKS)

    assert (got["agent_name"], got["num_tasks"], got["num_runs"]) == ("otter", 2, 3)
    assert got["tasks"]["apple"] == {
        "answers": [
            {"answer_name": "answer_1.md", "score": 1 / 3, "success": False, "word_count": 101},
            {"answer_name": "answer_2.md", "score": 0.0, "success": False, "word_count": 20},
        ],
        "best_score": 1 / 3,
        "avg_score": 0.166667,
        "pass": False,
    }
    assert got["tasks"]["bridge"]["pass"] is True


def test_pass_at_k_uses_the_number_of_runs_and_counts_tasks_with_any_success() -> None:
    got = agent_figures.public_summary("otter", TWO_TASKS)

    assert got["pass_at_3"] == 0.5
    assert [key for key in got if key.startswith("pass_at_")] == ["pass_at_3"]

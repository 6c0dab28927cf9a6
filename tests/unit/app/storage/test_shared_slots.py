"""Division of shared slots between processes, which renew one after another as in the database."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from app.storage.shared_state import slot_share


@dataclass
class Process:
    in_use: int = 0
    wanted: int = 0
    held: int = 0


def renew(total: int, process: Process, processes: list[Process]) -> None:
    """Renew the slots of one process and start as much work as they allow."""
    others = [(each.held, each.wanted) for each in processes if each is not process and (each.held or each.wanted)]
    process.held = slot_share(
        total, in_use=process.in_use, wanted=process.wanted, kept=process.held if process.wanted else 0, others=others
    )
    process.in_use = min(process.wanted, max(process.in_use, process.held))


@given(
    st.integers(1, 20),
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), max_size=60),
)
def test_slots_in_use_never_exceed_the_total(total: int, many: int, renewals: list[tuple[int, int]]) -> None:
    processes = [Process() for _ in range(many)]
    for number, wanted in renewals:
        process = processes[number % many]
        process.wanted = wanted
        process.in_use = min(process.in_use, wanted)
        renew(total, process, processes)
        assert sum(each.held for each in processes) <= total
        assert process.in_use <= process.held


@given(st.integers(1, 20), st.integers(1, 6), st.integers(1, 30))
def test_every_process_gets_its_share_after_running_work_ends(total: int, many: int, wanted: int) -> None:
    processes = [Process(wanted=wanted) for _ in range(many)]
    had_one = set()
    for _ in range(3 * many):
        for number, process in enumerate(processes):
            process.in_use = 0
            renew(total, process, processes)
            if process.held:
                had_one.add(number)
    assert len(had_one) == many
    assert all(each.held >= min(wanted, total // many) for each in processes)

"""seccomp program: system calls that it refuses."""

from __future__ import annotations

import struct

import pytest

from judges.isolation.process_limits import _threads_only_program

ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
X86, ARM = 0xC000003E, 0xC00000B7
THREAD = 0x00010000 | 0x100


def outcome(program: bytes, *, architecture: int, number: int, first: int = 0) -> int:
    """Interpret the program as the kernel does and return its result."""
    data = {0: number, 4: architecture, 16: first}
    steps = [struct.unpack_from("=HBBI", program, place) for place in range(0, len(program), 8)]
    here, register = 0, 0
    while True:
        code, yes, no, operand = steps[here]
        if code == 0x06:
            return int(operand)
        if code == 0x20:
            register, jump = data[operand], 0
        else:
            holds = {0x15: register == operand, 0x35: register >= operand, 0x45: bool(register & operand)}[code]
            jump = yes if holds else no
        here += 1 + jump


@pytest.mark.parametrize(
    ("machine", "architecture", "number", "first", "expected"),
    [
        ("x86_64", X86, 0, 0, ALLOW),  # read
        ("x86_64", X86, 57, 0, EPERM),  # fork
        ("x86_64", X86, 58, 0, EPERM),  # vfork
        ("x86_64", X86, 56, 17, EPERM),  # clone of a process
        ("x86_64", X86, 56, THREAD, ALLOW),  # clone of a thread
        ("x86_64", X86, 435, 0, ENOSYS),  # clone3
        ("x86_64", X86, 0x40000000 + 57, 0, EPERM),  # fork by its x32 number
        ("x86_64", 0x40000003, 2, 0, EPERM),  # fork by 32-bit numbers
        ("aarch64", ARM, 220, 17, EPERM),
        ("aarch64", ARM, 220, THREAD, ALLOW),
        ("aarch64", ARM, 435, 0, ENOSYS),
        ("aarch64", ARM, 57, 0, ALLOW),  # close
    ],
)
def test_new_processes_are_refused_and_threads_are_allowed(
    machine: str, architecture: int, number: int, first: int, expected: int
):
    assert outcome(_threads_only_program(machine), architecture=architecture, number=number, first=first) == expected


def test_unknown_machine_has_no_program():
    assert _threads_only_program("vax") == b""

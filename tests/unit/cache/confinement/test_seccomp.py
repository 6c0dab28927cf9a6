"""seccomp program: system calls that it refuses."""

from __future__ import annotations

import socket
import struct

import pytest

from cache.confinement.seccomp import seccomp_program

ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
X86, ARM = 0xC000003E, 0xC00000B7
THREAD, USER_NAMESPACE = 0x00010000 | 0x100, 0x10000000
PID = 4242


def outcome(program: bytes, number: int, *arguments: int, architecture: int = X86) -> int:
    """Interpret the program as the kernel does and return its result."""
    data = {0: number, 4: architecture} | {16 + 8 * place: value for place, value in enumerate((*arguments, 0, 0))}
    steps = [struct.unpack_from("=HBBI", program, place) for place in range(0, len(program), 8)]
    here, register = 0, 0
    while True:
        code, yes, no, operand = steps[here]
        if code == 0x06:
            return int(operand)
        jump = 0
        if code == 0x20:
            register = data[operand]
        elif code == 0x54:
            register &= operand
        else:
            holds = {0x15: register == operand, 0x35: register >= operand, 0x45: bool(register & operand)}[code]
            jump = yes if holds else no
        here += 1 + jump


def program(machine: str = "x86_64", *, processes: bool = False, network: bool = False) -> bytes:
    return seccomp_program(machine, PID, processes=processes, network=network)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ((0,), ALLOW),  # read
        ((57,), EPERM),  # fork
        ((56, 17), EPERM),  # clone of a process
        ((56, THREAD), ALLOW),  # clone of a thread
        ((435,), ENOSYS),  # clone3
        ((0x40000000 + 57,), EPERM),  # fork by its x32 number
        ((41, socket.AF_INET, socket.SOCK_STREAM), EPERM),
        ((42,), EPERM),  # connect
        ((53, socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC), ALLOW),
        ((53, socket.AF_UNIX, socket.SOCK_DGRAM), EPERM),  # can be connected to another address
        ((53, socket.AF_INET, socket.SOCK_STREAM), EPERM),
        ((62, PID), ALLOW),  # kill
        ((62, PID + 1), EPERM),
        ((234, PID), ALLOW),  # tgkill, as by abort
        ((302, 0), ALLOW),  # prlimit64
        ((302, 1), EPERM),
        ((157, 1), EPERM),  # prctl(PR_SET_PDEATHSIG)
        ((157, 15), ALLOW),  # prctl(PR_SET_NAME)
        ((101,), EPERM),  # ptrace
        ((272,), EPERM),  # unshare
        ((165,), EPERM),  # mount
        ((425,), EPERM),  # io_uring_setup
        ((457,), ENOSYS),  # newer than the list
    ],
)
def test_call_of_a_confined_process(call: tuple[int, ...], expected: int):
    assert outcome(program(), *call) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [((220, 17), EPERM), ((220, THREAD), ALLOW), ((435,), ENOSYS), ((57,), ALLOW), ((198,), EPERM), ((129, 1), EPERM)],
)
def test_call_on_arm(call: tuple[int, ...], expected: int):
    assert outcome(program("aarch64"), *call, architecture=ARM) == expected


def test_calls_of_another_architecture_are_refused():
    assert outcome(program(), 2, architecture=0x40000003) == EPERM


def test_processes_can_be_allowed_without_namespaces():
    allowing = program(processes=True)
    assert outcome(allowing, 57) == ALLOW
    assert outcome(allowing, 56, 17) == ALLOW
    assert outcome(allowing, 56, 17 | USER_NAMESPACE) == EPERM
    assert outcome(allowing, 62, PID + 1) == ALLOW  # kill
    assert outcome(allowing, 41, socket.AF_INET) == EPERM

"""Runs a command as a fork of the process of ``tests.fakes.warm_start``: sends it the open files, environment, folder
and arguments, passes signals on, and exits like the command. Imports little, so that it starts quickly.
"""

import os
import signal
import socket
import sys

NUMBER_BYTES = 4


def main() -> None:
    signals = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # until they can be passed on
    address, *arguments = sys.argv[1:]
    environment = [f"{name}={value}" for name, value in os.environ.items()]
    folder = os.getcwd()  # noqa: PTH109 - pathlib takes longer to import than everything else here
    message = "\0".join([folder, str(len(arguments)), *arguments, *environment]).encode("utf-8", "surrogateescape")
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        socket.send_fds(server, [len(message).to_bytes(NUMBER_BYTES, "big")], [0, 1, 2])
        server.sendall(message)
        pid = int.from_bytes(server.recv(NUMBER_BYTES, socket.MSG_WAITALL), "big", signed=True)

        def pass_on(received: int, _frame: object) -> None:
            try:  # noqa: SIM105 - contextlib takes time to import
                os.kill(pid, received)
            except ProcessLookupError:
                pass  # the command has just ended

        for number in signals:
            signal.signal(number, pass_on)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        code = int.from_bytes(server.recv(NUMBER_BYTES, socket.MSG_WAITALL), "big", signed=True)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main()

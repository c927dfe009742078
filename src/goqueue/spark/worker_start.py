"""Starts a Python process of Spark: `worker_start.py MODULE` instead of `-m MODULE`. It connects before it imports.

Spark gives a process that plans or drives a stream 10 s to connect back, and no setting changes that. What it imports
first takes half a second of CPU, which on a busy machine may be more than 10 s: the stream then fails at its start,
with "Python worker failed to connect back". So the connection is made at once, by what Python itself brings, and is
handed to the module when that wants to connect. For the same reason this file imports nothing of ours.
"""

import os
import runpy
import socket
import sys

TYPE_CHECKING = False  # typing takes long to import
if TYPE_CHECKING:
    from typing import Any

_PORT = "PYTHON_WORKER_FACTORY_PORT"


def connect_now() -> None:
    """The next socket that is to be connected to Spark is connected."""
    loopback = "::1" if os.environ.get("SPARK_PREFER_IPV6", "").lower() == "true" else "127.0.0.1"
    usual = socket.socket
    early = socket.create_connection((loopback, int(os.environ[_PORT])))
    spark = early.getpeername()[:2]

    class Connecting(socket.socket):
        def connect(self, address: "Any") -> None:
            if address[:2] != spark:
                super().connect(address)
                return
            socket.socket = usual  # type: ignore[misc]
            with early:
                os.dup2(early.fileno(), self.fileno())

    socket.socket = Connecting  # type: ignore[misc]


def main() -> None:
    if _PORT in os.environ:
        connect_now()
    del sys.argv[0]
    sys.path[0] = os.getcwd()  # as -m has it  # noqa: PTH109  pathlib takes long to import
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

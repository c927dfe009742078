"""Starts a Python process of Spark: `worker_start.py MODULE` instead of `-m MODULE`. It connects before it imports.

Spark gives a process that drives a stream 10 s to connect back and 10 s more to show its secret, and no setting changes
that. What the process imports first takes half a second of CPU, which on a busy machine may be more than 10 s: the
stream then fails at its start, with "Python worker failed to connect back". So both are done at once, by what Python
itself brings, and the module gets that connection when it wants to connect. This file imports nothing else before.
"""

import os
import runpy
import socket
import sys

TYPE_CHECKING = False  # typing takes long to import
if TYPE_CHECKING:
    from typing import Any

_PORT, _SECRET = "PYTHON_WORKER_FACTORY_PORT", "PYTHON_WORKER_FACTORY_SECRET"
_LENGTH_BYTES = 4
_WELCOME = b"\0\0\0\2ok"


def connect_now() -> None:
    """The next socket that is to be connected to Spark is connected, and Spark knows its secret."""
    loopback = "::1" if os.environ.get("SPARK_PREFER_IPV6", "").lower() == "true" else "127.0.0.1"
    usual = socket.socket
    early = socket.create_connection((loopback, int(os.environ[_PORT])))
    spark = early.getpeername()[:2]
    secret = os.environ[_SECRET].encode()
    early.sendall(len(secret).to_bytes(_LENGTH_BYTES, "big") + secret)
    if early.recv(len(_WELCOME), socket.MSG_WAITALL) != _WELCOME:
        sys.exit("Spark does not know the secret that it gave")

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
    sys.path.insert(0, os.getcwd())  # as -m does  # noqa: PTH109  pathlib takes long to import
    if _PORT in os.environ and _SECRET in os.environ:
        connect_now()
        from pyspark import util

        util._do_server_auth = lambda *_: None  # noqa: SLF001  it is done
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

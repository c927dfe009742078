"""How a member renews its session: on a socket of its own, in a thread that may wait."""

import socket
import threading

from goqueue.cluster.etcd.port import EtcdFault
from goqueue.cluster.local.messages import Answer, AskRenew, Faulty, Frames, Leased, framed

READ_BYTES = 4096


class LocalRenewals:
    """`goqueue.cluster.etcd.renewing.Renewals`."""

    def __init__(self, sock: socket.socket, deadline_s: float) -> None:
        self._socket = sock
        self._socket.settimeout(deadline_s)
        self._frames = Frames(Answer)
        self._number = 0
        self._lock = threading.Lock()
        """The thread of a session that has ended may still wait for its answer."""

    def renew(self, lease: int) -> int:
        with self._lock:
            return self._renew(lease)

    def _renew(self, lease: int) -> int:
        self._number += 1
        try:
            self._socket.sendall(framed(AskRenew(self._number, lease)))
            while True:
                data = self._socket.recv(READ_BYTES)
                if not data:
                    raise EtcdFault("the store has ended")
                for answer in self._frames.feed(data):
                    if answer.number != self._number:
                        continue  # to one that was given up
                    if isinstance(answer, Leased):
                        return answer.lease
                    raise EtcdFault(answer.words if isinstance(answer, Faulty) else "no answer to a renewal")
        except OSError as error:
            raise EtcdFault(f"the store does not answer: {error}") from None

    def close(self) -> None:
        """The socket is the process's: the next session uses it again."""

"""Connections that send what was made before the clock starts, and count the answers: the load of every publisher here,
whatever protocol is spoken. One loop drives all of them, so a client library costs nothing and chooses nothing.
"""

import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

NOTHING_S_MAX = 30.0
RECEIVE_BYTES = 256 * 1024

CountAnswers = Callable[[bytearray], int]
"""Takes whole answers from what was received, checks each, and says how many messages they acknowledge."""
MakeSenders = Callable[[int], "tuple[list[Sender], int]"]
"""For about so many messages; and how many they are exactly."""


class Spent(NamedTuple):
    messages: int
    seconds: float
    cpu_s: float
    """Of all nodes."""
    client_cpu_s: float = 0.0

    @property
    def rate(self) -> float:
        return self.messages / self.seconds

    @property
    def cpu_us(self) -> float:
        """Of all nodes, for one message."""
        return self.cpu_s * 1e6 / self.messages

    @property
    def client_busy(self) -> float:
        """The share of a core that the load generator took. Close to 1, the rate is its own limit."""
        return self.client_cpu_s / self.seconds


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=NOTHING_S_MAX)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class Sender:
    """One connection with all that it will send, in order. `batch`: messages in each frame, of which at most `ahead`
    are unanswered."""

    def __init__(
        self, connection: socket.socket, frames: Sequence[bytes], count_answers: CountAnswers, ahead: int, batch: int
    ) -> None:
        self.socket = connection
        self.socket.setblocking(False)
        self._frames = deque(frames)
        self._count_answers = count_answers
        self._unanswered_max = ahead * batch
        self._batch = batch
        self._unsent = b""
        self._unanswered = 0
        self._received = bytearray()

    @property
    def is_done(self) -> bool:
        return not self._frames and not self._unanswered

    @property
    def wants_to_write(self) -> bool:
        return bool(self._unsent)

    def send(self) -> None:
        room = (self._unanswered_max - self._unanswered) // self._batch
        if room > 0 and self._frames:
            taken = [self._frames.popleft() for _ in range(min(room, len(self._frames)))]
            self._unanswered += len(taken) * self._batch
            self._unsent = b"".join((self._unsent, *taken))
        if self._unsent:
            try:
                sent = self.socket.send(self._unsent)
            except BlockingIOError:
                return
            self._unsent = self._unsent[sent:]

    def receive(self) -> None:
        data = self.socket.recv(RECEIVE_BYTES)
        assert data, "a node has closed the connection"
        self._received += data
        self._unanswered -= self._count_answers(self._received)
        assert self._unanswered >= 0, "more was acknowledged than sent"

    def push(self) -> None:
        """Send one frame more, however many are unanswered."""
        frame = self._frames.popleft()
        self._unanswered += self._batch
        assert self.socket.send(frame) == len(frame), "the broker reads nothing"

    def round_trip_s(self) -> float:
        """Send one frame more, alone, and wait for its answer."""
        self.socket.settimeout(NOTHING_S_MAX)
        frame = self._frames.popleft()
        self._unanswered += self._batch
        started_s = time.perf_counter()
        self.socket.sendall(frame)
        while self._unanswered:
            self.receive()
        return time.perf_counter() - started_s


def send_all(make: MakeSenders, warm_up: int, messages: int, cpu_s: Callable[[], float]) -> Spent:
    """Returns when all are acknowledged. `cpu_s`: what the nodes have spent so far. The first `warm_up` go over
    connections of their own and are not counted: they are learned from."""
    senders, sent = make(messages)
    first, _ = make(warm_up)
    try:
        drive(first)
        began_s, cpu_began_s, client_began_s = time.monotonic(), cpu_s(), time.process_time()
        drive(senders)
        seconds, client_cpu_s = time.monotonic() - began_s, time.process_time() - client_began_s
        return Spent(sent, seconds, cpu_s() - cpu_began_s, client_cpu_s)
    finally:
        for sender in (*first, *senders):
            sender.socket.close()


def drive(senders: Sequence[Sender]) -> None:
    selector = selectors.DefaultSelector()
    busy = set(senders)
    for sender in senders:
        selector.register(sender.socket, selectors.EVENT_READ, sender)
        sender.send()
    while busy:
        events = selector.select(NOTHING_S_MAX)
        assert events, f"no answer came for {NOTHING_S_MAX} s"
        for key, ready in events:
            sender = key.data
            if ready & selectors.EVENT_READ:
                sender.receive()
            sender.send()
            if sender.is_done:
                busy.discard(sender)
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if sender.wants_to_write else 0)
            if wanted != key.events:
                selector.modify(sender.socket, wanted, sender)
    selector.close()

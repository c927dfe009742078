"""A blocking connection with a buffer of what has come and is not taken yet."""

from benchmarks.senders import RECEIVE_BYTES, connect


class Link:
    def __init__(self, address: str) -> None:
        self.socket = connect(address)
        self.received = bytearray()
        self.sent_bytes = self.received_bytes = 0

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)
        self.sent_bytes += len(data)

    def fill(self) -> None:
        """Waits for more."""
        data = self.socket.recv(RECEIVE_BYTES)
        assert data, "the broker has closed the connection"
        self.received += data
        self.received_bytes += len(data)

    def close(self) -> None:
        self.socket.close()

"""What the tests ask of every client library, so that one test speaks for all three."""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple, Protocol

Headers = tuple[tuple[str, bytes | None], ...]


class Message(NamedTuple):
    """To be sent."""

    partition: int
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None


class Record(NamedTuple):
    """As received."""

    topic: str
    partition: int
    offset: int
    value: bytes | None
    key: bytes | None
    headers: Headers
    timestamp_ms: int

    @property
    def place(self) -> tuple[int, int, bytes | None]:
        return self.partition, self.offset, self.value


class ClientFailure(Exception):
    """What a client library raised; `code` is Kafka's number, or a negative one of librdkafka's own."""

    def __init__(self, code: int | None, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


class Producer(Protocol):
    def send(self, topic: str, messages: Sequence[Message]) -> list[int]:
        """Send all, in order, and wait until each is answered. Offsets; ClientFailure if one failed."""

    def begin(self) -> None: ...

    def send_offsets(self, offsets: Mapping[tuple[str, int], int], group: str) -> None: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class Consumer(Protocol):
    def poll(self, timeout_s: float = 0.1) -> list[Record]: ...

    def assignment(self) -> set[tuple[str, int]]: ...

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None: ...

    def commit_soon(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Without waiting for the answer, and without hearing of it."""

    def committed(self, topic: str, partition: int) -> int | None: ...

    def close(self) -> None: ...


class Client(Protocol):
    """One library. `assignors`: what its group members can agree on."""

    name: ClassVar[str]
    assignors: ClassVar[tuple[str, ...]]

    @staticmethod
    def producer(
        address: str,
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
    ) -> Producer: ...

    @staticmethod
    def member(
        address: str,
        group: str,
        topics: Iterable[str],
        assignor: str = "range",
        instance_id: str | None = None,
        metadata_ms: int = 300_000,
    ) -> Consumer:
        """A member of a group, from the earliest offset, which commits only when told to."""

    @staticmethod
    def read(address: str, ends: Mapping[tuple[str, int], int], *, committed_only: bool = False) -> list[Record]:
        """Everything before `ends`, read without a group."""

"""Messages of producers with a sequence, in a transaction or not, for partitions that other nodes lead."""

import msgspec

from goqueue.broker.forwarding.calls import Call, OnDone
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.forwarding.parts import ask_leader, check_leads
from goqueue.broker.transactions.steps import TransactionSteps
from goqueue.model.transactions import Placed, Producer
from goqueue.ports.forwarding import Stop
from goqueue.records.messages import NewMessage


class AppendAs(msgspec.Struct, array_like=True):
    producer: Producer
    topic: str
    partition: int
    message: NewMessage
    sequence: int | None
    is_transactional: bool


APPEND_AS: Call[AppendAs, Placed] = Call("append-as", AppendAs, Placed)


class SpreadProducers:
    def __init__(self, forwarding: Forwarding, steps: TransactionSteps) -> None:
        self._forwarding = forwarding
        self._steps = steps
        steps.elsewhere = self.append
        APPEND_AS.serve(forwarding, self._serve)

    def append(
        self,
        producer: Producer,
        place: tuple[str, int],
        message: NewMessage,
        sequence: int | None,
        on_placed: OnDone[Placed],
        is_transactional: bool,
    ) -> None:
        wanted = AppendAs(producer, *place, message, sequence, is_transactional)
        ask_leader(self._forwarding, place, APPEND_AS, wanted, lambda done: self._here(wanted, done), on_placed)

    def _here(self, wanted: AppendAs, on_placed: OnDone[Placed]) -> None:
        self._steps.append_here(
            wanted.producer,
            (wanted.topic, wanted.partition),
            wanted.message,
            wanted.sequence,
            on_placed,
            transactional=wanted.is_transactional,
        )

    def _serve(self, wanted: AppendAs, _timeout_ms: int, on_reply: OnDone[Placed]) -> Stop | None:
        check_leads(self._forwarding, wanted.topic, wanted.partition)
        self._here(wanted, on_reply)
        return None

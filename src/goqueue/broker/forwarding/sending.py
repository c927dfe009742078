"""Messages for partitions that other nodes lead: each goes to its leader, as a message for that partition."""

from collections.abc import Sequence

import msgspec

from goqueue.broker.forwarding.calls import Call, OnDone, TellableError
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.forwarding.parts import Answered, InParts, check_leads
from goqueue.broker.publishing.send import Sender
from goqueue.broker.publishing.together import OnSent
from goqueue.model.errors import GoQueueError
from goqueue.ports.forwarding import Stop
from goqueue.records.messages import NewMessage, Sent


class Send(msgspec.Struct, array_like=True):
    topic: str
    messages: list[NewMessage]
    """Each says its partition."""


class Told(msgspec.Struct, array_like=True):
    """What became of one message."""

    partition: int
    offset: int
    durability: str
    error: TellableError | None = None

    @classmethod
    def of(cls, sent: Sent) -> "Told":
        return cls(
            sent.partition,
            sent.offset,
            sent.durability,
            None if sent.error is None else TellableError.of(sent.error),
        )

    def sent(self) -> Sent:
        error = None if self.error is None else self.error.error()
        return Sent(self.partition, self.offset, error, self.durability)


SEND: Call[Send, list[Told]] = Call("send", Send, list[Told])


class SpreadSender:
    """What `Sender.send` does in a cluster."""

    def __init__(self, forwarding: Forwarding, sender: Sender) -> None:
        self._forwarding = forwarding
        self._sender = sender
        sender.spread = self.send
        SEND.serve(forwarding, self._serve)

    def send(self, topic: str, messages: Sequence[NewMessage], on_sent: OnSent, *, at_once: bool = False) -> None:
        placed: list[NewMessage] = []
        numbers: list[int] = []
        sent: list[Sent] = [Sent(-1, -1)] * len(messages)
        for number, message in enumerate(messages):
            try:
                partition = self._sender.choose(topic, message)
            except GoQueueError as error:
                self._sender.refused(topic, error)
                sent[number] = Sent(-1, -1, error.kept())
            else:
                placed.append(message._replace(partition=partition))
                numbers.append(number)

        def here(part: list[int], answered: Answered[Sent]) -> None:
            self._sender.send_here(topic, [placed[each] for each in part], answered, at_once=at_once)

        def there(node_id: int, part: list[int], answered: Answered[Sent]) -> None:
            def told(reply: list[Told] | GoQueueError) -> None:
                answered(reply if isinstance(reply, GoQueueError) else [each.sent() for each in reply])

            SEND.ask(self._forwarding, node_id, Send(topic, [placed[each] for each in part]), told)

        def failed(number: int, error: GoQueueError) -> Sent:
            return Sent(placed[number].partition or 0, -1, error)

        def all_sent(replies: list[Sent]) -> None:
            for number, reply in zip(numbers, replies):
                sent[number] = reply
            on_sent(sent)

        spots = [(topic, message.partition or 0) for message in placed]
        InParts(self._forwarding, spots, here, there, lambda sent: sent.error, failed, all_sent).start()

    def _serve(self, wanted: Send, _timeout_ms: int, on_reply: OnDone[list[Told]]) -> Stop | None:
        for partition in {message.partition or 0: None for message in wanted.messages}:
            check_leads(self._forwarding, wanted.topic, partition)
        self._sender.send_here(wanted.topic, wanted.messages, lambda sent: on_reply([Told.of(each) for each in sent]))
        return None

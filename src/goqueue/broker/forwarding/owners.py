"""Whose producer an id is: a message that names a producer by its number alone may belong to a transaction, and only
the coordinator of that knows it. It is published as a message without one only when all ledgers were asked and none
knows the producer: else it would be seen though its transaction is aborted.
"""

from collections.abc import Callable
from functools import partial

import msgspec

from goqueue.broker.forwarding.calls import Call, OnDone
from goqueue.broker.forwarding.forwarding import LOOK_AGAIN_MS, PATIENCE_MS, Forwarding, not_reached
from goqueue.broker.forwarding.others import ask_others, good_ones
from goqueue.broker.shards import SHARDS
from goqueue.broker.transactions.steps import TransactionSteps
from goqueue.broker.transactions.transactions import Transactions
from goqueue.model.again import Again
from goqueue.model.errors import GoQueueError, NotReached
from goqueue.model.transactions import Placed, Producer
from goqueue.ports.forwarding import NotHere, Stop
from goqueue.records.messages import NewMessage

ASK_MS_MAX = 2000
PLAIN_MAX = 10_000
"""Producers without transactions that are remembered: an id that was one stays one."""

OnPlaced = OnDone[Placed]


class Owner(msgspec.Struct, array_like=True):
    """What one node knows."""

    transactional_id: str | None
    shards: list[int]
    """The ledgers that it speaks for."""


class PublishAs(msgspec.Struct, array_like=True):
    producer: Producer
    topic: str
    message: NewMessage
    sequence: int | None


OWNER: Call[int, Owner] = Call("owner-of-producer", int, Owner)
PUBLISH_AS: Call[PublishAs, Placed] = Call("publish-as", PublishAs, Placed)


class SpreadOwners:
    """`TransactionSteps.find_owner` in a cluster."""

    def __init__(self, forwarding: Forwarding, steps: TransactionSteps, transactions: Transactions) -> None:
        self._forwarding = forwarding
        self._steps = steps
        self._transactions = transactions
        self._plain: dict[int, None] = {}
        steps.find_owner = self.publish
        OWNER.serve(forwarding, self._serve_owner)
        PUBLISH_AS.serve(forwarding, self._serve_publish)

    def publish(
        self,
        producer: Producer,
        topic: str,
        message: NewMessage,
        sequence: int | None,
        on_placed: OnPlaced,
        plainly: Callable[[], None],
    ) -> None:
        if producer.producer_id in self._plain:
            plainly()
            return
        wanted = PublishAs(producer, topic, message, sequence)
        give_up_s = self._forwarding.clock.monotonic_s() + PATIENCE_MS / 1000

        def look(again: Again) -> None:
            self._ask_all(producer.producer_id, partial(told, partial(retry, again)))

        def told(retry: Callable[[GoQueueError], None], owner: str | None, is_sure: bool) -> None:
            if owner is not None:
                self._publish_at(owner, wanted, on_placed, retry)
            elif is_sure:
                self._remember_plain(producer.producer_id)
                plainly()
            else:
                retry(not_reached(f"the coordinator of producer {producer.producer_id}"))

        def retry(again: Again, error: GoQueueError) -> None:
            clock = self._forwarding.clock
            if clock.monotonic_s() >= give_up_s:
                on_placed(error)
            else:
                clock.call_after(LOOK_AGAIN_MS, again)

        Again(look)()

    def _remember_plain(self, producer_id: int) -> None:
        if len(self._plain) >= PLAIN_MAX:
            self._plain.pop(next(iter(self._plain)))
        self._plain[producer_id] = None

    def _ask_all(self, producer_id: int, on_told: Callable[[str | None, bool], None]) -> None:
        """Who it is; and whether that is sure, if nobody knows it."""
        here = self._owner(producer_id)

        def told(replies: dict[int, Owner | GoQueueError]) -> None:
            told_there = good_ones(replies.values())
            known = [here, *told_there]
            owner = next((each.transactional_id for each in known if each.transactional_id is not None), None)
            spoken_for = {shard for each in known for shard in each.shards}
            on_told(owner, len(told_there) == len(replies) and len(spoken_for) == SHARDS)

        ask_others(self._forwarding, OWNER, producer_id, told, ASK_MS_MAX)

    def _owner(self, producer_id: int) -> Owner:
        shards, owner = [], None
        for number, coordinator in self._transactions.coordinators.active():
            shards.append(number)
            known = coordinator.peek().of_producer(producer_id)
            owner = owner if known is None else known.transactional_id
        return Owner(owner, shards)

    def _publish_at(
        self, owner: str, wanted: PublishAs, on_placed: OnPlaced, again: Callable[[GoQueueError], None]
    ) -> None:
        homes = self._forwarding.homes
        node_id = homes.transaction(owner)
        if node_id == homes.me:
            self._here(wanted, on_placed)
        elif node_id is None:
            again(not_reached(f"the coordinator of {owner!r}"))
        else:
            told = partial(self._placed, on_placed, again)
            PUBLISH_AS.ask(self._forwarding, node_id, wanted, told)

    def _placed(self, on_placed: OnPlaced, again: Callable[[GoQueueError], None], reply: Placed | GoQueueError) -> None:
        if isinstance(reply, NotReached):
            again(reply)
        else:
            on_placed(reply)

    def _here(self, wanted: PublishAs, on_placed: OnPlaced) -> None:
        self._steps.publish(wanted.producer, wanted.topic, wanted.message, wanted.sequence, on_placed)

    # -- being asked

    def _serve_owner(self, producer_id: int, _timeout_ms: int, on_reply: OnDone[Owner]) -> Stop | None:
        on_reply(self._owner(producer_id))
        return None

    def _serve_publish(self, wanted: PublishAs, _timeout_ms: int, on_reply: OnPlaced) -> Stop | None:
        if self._owner(wanted.producer.producer_id).transactional_id is None:
            raise NotHere(f"producer {wanted.producer.producer_id} is not coordinated here")
        self._here(wanted, on_reply)
        return None

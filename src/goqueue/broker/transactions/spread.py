"""Transactions across nodes: their coordinators ask leaders of partitions and of groups to end them, and leaders ask
coordinators whether what they are sent belongs to one.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from goqueue.broker.groups.groups import Groups
from goqueue.broker.remote.asking import Asking, Where
from goqueue.broker.remote.messages import (
    GROUPS,
    TRANSACTIONS,
    Answered,
    EndInPartition,
    Submit,
    Verify,
    decode_code,
    encode,
)
from goqueue.broker.remote.serving import Elsewhere, OnAnswer, OnAnswered, Serving
from goqueue.broker.shards import shard_of_group, shard_of_transaction
from goqueue.broker.topics.topics import Topics
from goqueue.broker.transactions.markers import OnEnded
from goqueue.broker.transactions.transactions import Transactions
from goqueue.machines.find_names import FindNames
from goqueue.machines.groups.commands import EndTransactionOffsets
from goqueue.machines.machine import Command
from goqueue.machines.transactions.commands import AddGroup, AddPartitions, CodeReply, MarkerJob, Partition
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.names import LEDGER_PREFIX
from goqueue.model.refusal import Refused
from goqueue.model.transactions import Hanging
from goqueue.runtime.ahead import OnReply
from goqueue.runtime.coordinators import Coordinators

R = TypeVar("R")

VERIFY_MS = 1000
"""How long a batch waits until its transaction is known."""
MARKER_MS = 5000


class SpreadTransactions:
    def __init__(
        self,
        asking: Asking,
        serving: Serving,
        transactions: Transactions,
        groups: Groups,
        topics: Topics,
        reread: Callable[[Callable[[], None]], None],
    ) -> None:
        """`reread`: call when all is known that is in the metadata now."""
        self._asking = asking
        self._reread = reread
        self._transactions = transactions
        self._groups = groups
        self._topics = topics
        transactions.markers.elsewhere = self
        groups.on_transaction_ended = self._offsets_ended
        serving.commands[TRANSACTIONS] = self._do_transactions
        serving.commands[GROUPS] = self._do_groups
        serving.others[Verify] = self._verify
        serving.others[EndInPartition] = self._end

    # -- asking

    def enlist(self, command: AddPartitions | AddGroup, joins: bool, on_reply: OnReply[CodeReply]) -> None:
        number = shard_of_transaction(command.transactional_id)
        if joins:
            self._transactions.coordinators.of(number).submit(command, on_reply)
            return
        partitions = command.partitions if isinstance(command, AddPartitions) else ()
        groups = (command.group,) if isinstance(command, AddGroup) else ()
        who = command.transactional_id, number
        producer = command.producer_id, command.epoch

        def answered(answer: Answered | GoQueueError) -> None:
            on_reply(answer if isinstance(answer, GoQueueError) else CodeReply(decode_code(answer.value)))

        self._asking.ask(
            Where(f"{LEDGER_PREFIX}{TRANSACTIONS}", number),
            lambda epoch, left_ms: Verify(*who, epoch, *producer, partitions, groups, left_ms),
            answered,
            timeout_ms=VERIFY_MS,
            is_repeatable=True,
        )

    def end_in_partition(self, job: MarkerJob, place: Partition, done: OnEnded) -> None:
        """A partition that is not known here may have been deleted, or be newer than what is known here. To take the
        second for the first would leave a transaction open there that nobody ends: so the metadata is read first."""

        def look_again() -> None:
            if self._topics.exists(*place):
                self._ask_to_end(job, place, done)
            else:
                done(Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {place[1]} of {place[0]!r}"))

        if self._topics.exists(*place):
            self._ask_to_end(job, place, done)
        else:
            self._reread(look_again)

    def _ask_to_end(self, job: MarkerJob, place: Partition, done: OnEnded) -> None:
        topic_id = self._topics.image.topics[place[0]].id

        def make(epoch: int, left_ms: int) -> EndInPartition:
            return EndInPartition(
                topic_id, place[1], epoch, job.producer_id, job.epoch, job.coordinator_epoch, job.commit, left_ms
            )

        def answered(answer: Answered | GoQueueError) -> None:
            done(answer if isinstance(answer, GoQueueError) else None)

        self._asking.ask(Where(*place), make, answered, timeout_ms=MARKER_MS, is_repeatable=True)

    # -- being asked

    def _do_transactions(self, request: Submit, command: Command[R], on_reply: OnReply[R]) -> None:
        check_led(self._transactions.coordinators, request.number)
        if isinstance(command, FindNames):
            self._transactions.coordinators.here(request.number).submit(command, on_reply)  # type: ignore[arg-type]
        else:
            self._transactions.submit(command, on_reply)

    def _do_groups(self, request: Submit, command: Command[R], on_reply: OnReply[R]) -> None:
        if not self._groups.is_led(request.number):
            raise Elsewhere(f"{GROUPS}-{request.number}")
        if isinstance(command, EndTransactionOffsets):
            self._groups.end_transaction_here(request.number, command, on_reply)  # type: ignore[arg-type]  # R is CodeReply
        else:
            self._groups.submit_to(request.number, command, on_reply)

    def _verify(self, request: Verify, on_answer: OnAnswer) -> None:
        check_led(self._transactions.coordinators, request.number)
        places: list[Partition | str] = [*request.partitions, *request.groups]
        verdicts = (
            self._transactions.verify_producer(request.producer_id, request.producer_epoch, one) for one in places
        )
        on_answer(Answered(0, encode(next((code for code in verdicts if code is not Code.NONE), Code.NONE))))

    def _end(self, request: EndInPartition, on_answer: OnAnswered) -> None:
        topic = self._topics.image.by_id(request.topic_id)
        if topic is None or not self._topics.leads(topic.name, request.partition):
            raise Elsewhere(f"{request.topic_id.hex()}/{request.partition}")
        job = Hanging(request.producer_id, request.producer_epoch, request.coordinator_epoch, request.commit)
        self._transactions.markers.end_here(
            job, (topic.name, request.partition), lambda error: on_answer(Answered() if error is None else error)
        )

    def _offsets_ended(self, producer_id: int, shard: int) -> None:
        self._transactions.verified.ended_in_groups(producer_id, lambda group_id: shard_of_group(group_id) == shard)


def check_led(coordinators: Coordinators[int, Any], number: int) -> None:
    if coordinators.find(number) is None:
        raise Elsewhere(f"{coordinators.kind}-{number}")

"""One group has one kind, though in a cluster its coordinator and its deliveries are on different nodes: whoever begins
with a group that it does not know asks the others first.

Of two first uses at once, as queue and as stream, at most one succeeds. Each is noted at its own place before it asks
at the other's: a queue where its partition is led, a stream at the coordinator. So whichever asks last sees the other;
if they cross, both do, and both are refused. This holds across a change of coordinator, since the next one asks all
nodes anew, and costs nothing once the group is known. Nobody who cannot be asked is taken to say no.
"""

from collections.abc import Callable

from goqueue.broker.groups.groups import Groups
from goqueue.broker.queues.queues import Queues
from goqueue.broker.remote.asking import Asking, Where
from goqueue.broker.remote.messages import GROUPS, Answered, KindAnswer, KindOf, decode_kind, encode
from goqueue.broker.remote.serving import Elsewhere, OnAnswer, Serving
from goqueue.broker.shards import shard_of_group
from goqueue.model.errors import CoordinatorLoading, GoQueueError
from goqueue.model.names import LEDGER_PREFIX

KIND_MS = 2000

OnKind = Callable[[bool | GoQueueError], None]
"""An error: nobody can tell now."""


class SpreadKinds:
    def __init__(self, asking: Asking, serving: Serving, groups: Groups, queues: Queues) -> None:
        self._asking = asking
        self._groups = groups
        self._queues = queues
        groups.ask_queue, queues.ask_stream = self.is_queue, self.is_stream
        serving.others[KindOf] = self._answer

    def is_stream(self, group_id: str, on_kind: OnKind) -> None:
        """Whether it commits offsets: its coordinator knows."""
        shard = shard_of_group(group_id)

        def answered(answer: Answered | GoQueueError) -> None:
            on_kind(
                _unknown(group_id, answer) if isinstance(answer, GoQueueError) else decode_kind(answer.value).is_stream
            )

        self._asking.ask(
            Where(f"{LEDGER_PREFIX}{GROUPS}", shard),
            lambda _epoch, left_ms: KindOf(group_id, left_ms, asks_coordinator=True),
            answered,
            timeout_ms=KIND_MS,
            is_repeatable=True,
        )

    def is_queue(self, group_id: str, on_kind: OnKind) -> None:
        """Whether records were delivered to it one by one, on any node that lives."""
        if self._queues.is_queue(group_id):
            on_kind(True)
            return
        others = [node_id for node_id in sorted(self._asking.image().nodes) if node_id != self._asking.me]
        answers: list[bool | GoQueueError] = []

        def answered(answer: Answered | GoQueueError) -> None:
            is_error = isinstance(answer, GoQueueError)
            answers.append(_unknown(group_id, answer) if is_error else decode_kind(answer.value).is_queue)  # type: ignore[arg-type,union-attr]
            if len(answers) == len(others):
                told()

        def told() -> None:
            on_kind(True if True in answers else next((one for one in answers if one is not False), False))

        if not others:
            told()
        for node_id in others:
            self._asking.ask_node(node_id, KindOf(group_id, KIND_MS), answered, KIND_MS)

    def _answer(self, request: KindOf, on_answer: OnAnswer) -> None:
        group_id = request.group_id
        shard = shard_of_group(group_id)
        is_led = self._groups.is_led(shard)
        if request.asks_coordinator and not is_led:
            raise Elsewhere(f"{GROUPS}-{shard}")
        is_stream = is_led and self._groups.is_stream(group_id)
        on_answer(Answered(0, encode(KindAnswer(is_stream, self._queues.is_queue(group_id)))))


def _unknown(group_id: str, error: GoQueueError) -> GoQueueError:
    return CoordinatorLoading(f"it is not known yet whether group {group_id!r} is a queue: {error}")

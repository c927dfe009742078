"""Topics, of a client that may make and delete so many partitions in a second (KIP-599). It stands between requests and
what changes topics, so that no way to make one goes past it.
"""

from collections.abc import Callable
from typing import Any

from goqueue.broker.accounts.quotas import Allowance
from goqueue.broker.topics.topics import OnResult, TopicCommand
from goqueue.machines.controller_commands import AddPartitions, CreateTopic, DeleteTopic, Result
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.quotas import MUTATIONS, QuotaExceeded
from goqueue.model.refusal import Refused


class MutationsPort:
    """What comes while something is owed is refused, each command by itself: of one request some may pass, and the rest
    is asked for again. Whoever cannot understand that (`is_strict` is False) gets all of it, and has to wait after."""

    def __init__(
        self, topics: Any, allowance: Allowance, on_delay: Callable[[int], object] | None, *, is_strict: bool
    ) -> None:
        self._topics = topics
        self._allowance = allowance
        self._on_delay = on_delay
        """Told for how many milliseconds its client has to wait."""
        self._is_strict = is_strict

    def __getattr__(self, name: str) -> Any:
        return getattr(self._topics, name)

    def submit(self, command: TopicCommand, on_reply: OnResult) -> None:
        count = self._partitions(command)
        if count <= 0:
            self._topics.submit(command, on_reply)
            return
        try:
            delay_ms = self._take(count)
        except QuotaExceeded as error:
            self._delay(error.retry_ms)
            on_reply(error.kept())
            return

        def answered(reply: Result | GoQueueError) -> None:
            if isinstance(reply, GoQueueError) or reply.code is not Code.NONE:
                self._allowance.use(MUTATIONS, -count)  # nothing was made
            on_reply(reply)

        if not self._is_strict:
            self._delay(delay_ms)
        self._topics.submit(command, answered)

    def _take(self, count: int) -> int:
        if self._is_strict:
            self._allowance.check(MUTATIONS)
            return self._allowance.use(MUTATIONS, count)
        return self._allowance.take(MUTATIONS, count)

    def _delay(self, delay_ms: int) -> None:
        if delay_ms and self._on_delay is not None:
            self._on_delay(delay_ms)

    def _partitions(self, command: TopicCommand) -> int:
        """So many it would make or delete. None, if it only asks, or will be refused for another reason."""
        topics = self._topics.image.topics
        try:
            match command:
                case CreateTopic(name, check_only=False):
                    return 0 if name in topics else len(command.assignments) or command.partitions
                case AddPartitions(name, check_only=False):
                    return command.partitions - topics[name].partitions if name in topics else 0
                case DeleteTopic(name):
                    return topics[name].partitions if name in topics else 0
        except Refused:
            return 0
        return 0

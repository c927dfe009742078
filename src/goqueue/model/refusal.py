"""A request that was understood and turned down, with the protocol's own number for why."""

from collections.abc import Mapping

from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.placements import NodeInfo


class Refused(GoQueueError):
    def __init__(self, code: Code, message: str = "") -> None:
        super().__init__(message or code.name.lower().replace("_", " "))
        self.code = code


class NotLeader(Refused):
    """This copy does not lead its partition, or not any more. What was asked of it may have been done or not: who waits
    for an acknowledgement when the leader changes is told this."""

    retriable = True

    def __init__(self, message: str, leader: NodeInfo | None = None, epoch: int = -1) -> None:
        super().__init__(Code.NOT_LEADER_OR_FOLLOWER, message)
        self.leader = leader
        """Who leads, if that is known."""
        self.epoch = epoch
        """Of the leader."""


class NotAppended(NotLeader):
    """The same, of what was refused before anything was appended: it was not done, and may be sent to the leader."""


class InvalidRecords(Refused):
    """A batch with records that may not be published; `faults` says why, by their places in the batch."""

    def __init__(self, message: str, faults: Mapping[int, str] | None = None, code: Code = Code.INVALID_RECORD) -> None:
        super().__init__(code, message)
        self.faults = faults or {}


class SchemaMismatch(InvalidRecords):
    """Records that do not fit their schema."""

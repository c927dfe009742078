"""Errors are types with meaning, so that each door needs only one table from error to code."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Self


class GoQueueError(Exception):
    """Base of everything GoQueue raises on purpose. `retriable`: the same call may succeed later."""

    retriable = False

    def kept(self) -> Self:
        """This error as a value, to be kept or to be raised again. Its traceback holds the frames it came through, and
        these hold whatever keeps it: a cycle for the collector. And each time it is raised it would grow."""
        if self.__suppress_context__ and self.__cause__ is None:
            self.__context__ = None  # nobody is shown it, and it has frames of its own
        return self.with_traceback(None)


class CorruptBatch(GoQueueError):
    """Bytes that should be a record batch are not: damaged, truncated or never were one."""


class InvalidName(GoQueueError):
    """A topic name that may not reach the disk."""


class OffsetOutOfRange(GoQueueError):
    """An offset below the start or beyond the end of a log."""


class BatchTooLarge(GoQueueError):
    """A batch over the limit that its log accepts."""


class DiskFull(GoQueueError):
    """No room for an append. Nothing was written; the log goes on when room returns."""

    retriable = True


class LogPoisoned(GoQueueError):
    """A write or sync of this log failed, so what is on its disk is unknown. It serves nothing until reopened."""


class LogClosed(GoQueueError):
    """The log was closed or deleted."""


class CoordinatorFailed(GoQueueError):
    """A fault of ours: this command was not decided, or nobody knows whether it was. The coordinator reads its ledger
    again."""

    retriable = True


class CoordinatorLoading(GoQueueError):
    """The coordinator is reading its ledger and decides nothing yet."""

    retriable = True


class NotCoordinator(GoQueueError):
    """The coordinator is not in service on this node, or not any more. What it was asked to do may have been done."""

    retriable = True


class NotTaken(NotCoordinator):
    """The same, of what the coordinator has not begun to decide: it was not done."""


class NotReached(GoQueueError):
    """What was asked of another node was never sent, or that node would not look at it: it was not done."""

    retriable = True


class Indeterminate(GoQueueError):
    """It may have been done or not: what was asked of another node was sent, and its answer was lost; or too few copies
    have had it for long."""

    retriable = True


class CannotJoin(GoQueueError):
    """This node may not be one of the cluster that it was told of; the message says why, and the way out."""


class DataDirectoryLocked(GoQueueError):
    """Another process owns this data directory."""


class NoDataDirectory(GoQueueError):
    """No node has ever run on this directory."""


class MetadataDamaged(GoQueueError):
    """What tells a node's topics is gone or short. The message says the way out."""


class NewerFormat(GoQueueError):
    """A later version has written in this data directory. The message says which, and the way out."""


class DamagedFile(GoQueueError):
    """One of our own side files does not hold what was written to it."""


class InvalidSettings(GoQueueError):
    """The settings cannot be used; the message lists every problem found."""


class StaleEpoch(GoQueueError):
    """A leader whose reign is over tried to write."""


class ReadFailed(GoQueueError):
    """The disk could not give back some bytes. What it can still read is served as before."""

    retriable = True


class InvalidOption(GoQueueError):
    """A topic option that does not exist or cannot have that value."""


class InvalidWish(GoQueueError):
    """A `gq-` header of a record asks for something that cannot be. `faults`: of which records of a batch, by their
    places, and why; empty: nobody has looked for them."""

    faults: Mapping[int, str] = MappingProxyType({})


class MalformedReceipt(GoQueueError):
    """A text that is no receipt of ours: damaged, made up, or of another key."""


class InvalidMoment(GoQueueError):
    """A text that should be a time or a duration and is none."""


class InvalidFilter(GoQueueError):
    """A filter that cannot be used; the message lists every problem found."""

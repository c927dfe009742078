"""A request that was understood and turned down, with the protocol's own number for why."""

from collections.abc import Mapping

from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError


class Refused(GoQueueError):
    def __init__(self, code: Code, message: str = "") -> None:
        super().__init__(message or code.name.lower().replace("_", " "))
        self.code = code


class SchemaMismatch(Refused):
    """Records that do not fit their schema; `faults` says for each of their places in the batch why."""

    def __init__(self, message: str, faults: Mapping[int, str] | None = None, code: Code = Code.INVALID_RECORD) -> None:
        super().__init__(code, message)
        self.faults = faults or {}

"""A request that was understood and turned down, with the protocol's own number for why."""

from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError


class Refused(GoQueueError):
    def __init__(self, code: Code, message: str = "") -> None:
        super().__init__(message or code.name.lower().replace("_", " "))
        self.code = code

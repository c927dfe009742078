"""Calls of the broker's services on other nodes: arguments and replies as msgpack, errors by their names."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from goqueue.broker.forwarding.forwarding import Asked, Forwarding
from goqueue.model import errors
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError, Indeterminate
from goqueue.model.refusal import NotAppended, NotLeader, Refused
from goqueue.ports.forwarding import NotHere, OnReply, Stop

CALL_MS_MAX = 30_000

A = TypeVar("A")
R = TypeVar("R")

_TYPES: dict[str, type[GoQueueError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, GoQueueError)
}
_NOT_LEADING: dict[str, type[NotLeader]] = {kind.__name__: kind for kind in (NotLeader, NotAppended)}


class TellableError(msgspec.Struct, array_like=True):
    """An error of ours, told to another node."""

    kind: str
    code: int
    message: str

    @classmethod
    def of(cls, error: GoQueueError) -> "TellableError":
        code = error.code if isinstance(error, Refused) else Code.NONE
        return cls(type(error).__name__, int(code), str(error))

    def error(self) -> GoQueueError:
        if self.kind in _NOT_LEADING:
            return _NOT_LEADING[self.kind](self.message)
        if self.code != Code.NONE:
            return Refused(Code(self.code), self.message)
        kind = _TYPES.get(self.kind)
        return kind(self.message) if kind is not None else Refused(Code.UNKNOWN_SERVER_ERROR, self.message)


class Outcome(msgspec.Struct, array_like=True):
    reply: msgspec.Raw
    error: TellableError | None = None


OnDone = Callable[[R | GoQueueError], None]
Run = Callable[[A, int, OnDone[R]], Stop | None]
"""Given the arguments, how long to wait at most, and where to put the reply; NotHere: nothing was done. Returns how to
stop it."""

_encode = msgspec.msgpack.Encoder().encode
_outcome = msgspec.msgpack.Decoder(Outcome).decode
NOTHING = msgspec.Raw(_encode(None))


class Call(Generic[A, R]):
    """One call, by name: `ask` asks another node for it, `serve` answers."""

    def __init__(self, name: str, arguments: Any, reply: Any) -> None:
        """The types of both, which may be unions or None: no type of Python's says that."""
        self.name = name
        self._decode_arguments = msgspec.msgpack.Decoder(arguments).decode
        self._decode_reply = msgspec.msgpack.Decoder(reply).decode

    def ask(
        self,
        forwarding: Forwarding,
        node_id: int,
        arguments: A,
        on_reply: OnDone[R],
        timeout_ms: int = CALL_MS_MAX,
    ) -> Asked:
        def answered(answer: bytes | GoQueueError) -> None:
            if isinstance(answer, GoQueueError):
                on_reply(answer)
                return
            try:
                outcome = _outcome(answer)
                reply: R | GoQueueError = (
                    self._decode_reply(outcome.reply) if outcome.error is None else outcome.error.error()
                )
            except msgspec.DecodeError as error:
                reply = Indeterminate(f"node {node_id} answered {self.name} with what is not understood: {error}")
            on_reply(reply)

        return forwarding.ask(node_id, self.name, _encode(arguments), answered, timeout_ms)

    def serve(self, forwarding: Forwarding, run: Run[A, R]) -> None:
        def serve(payload: bytes, timeout_ms: int, on_reply: OnReply) -> Stop | None:
            def replied(reply: R | GoQueueError) -> None:
                if isinstance(reply, NotHere):
                    on_reply(reply)
                elif isinstance(reply, GoQueueError):
                    on_reply(_encode(Outcome(NOTHING, TellableError.of(reply))))
                else:
                    on_reply(_encode(Outcome(msgspec.Raw(_encode(reply)))))

            try:
                return run(self._decode_arguments(payload), timeout_ms, replied)
            except msgspec.DecodeError as error:
                replied(NotHere(f"the arguments are not understood: {error}"))
            except GoQueueError as error:
                replied(error)
            return None

        forwarding.serve(self.name, serve)

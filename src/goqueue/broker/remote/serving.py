"""Answering other nodes: what they ask is done here if this node leads what it is about, and told elsewhere if not."""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from goqueue.broker.remote.commands import decode_command, encode_reply
from goqueue.broker.remote.messages import (
    Answer,
    Answered,
    Failed,
    NotHere,
    Request,
    Submit,
    decode_request,
    encode,
    failed,
)
from goqueue.machines.machine import Command
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError, Indeterminate, NotCoordinator, NotTaken
from goqueue.model.refusal import NotLeader, Refused
from goqueue.ports.peers import PeerRequest
from goqueue.telemetry.logs import get_logger

events = get_logger("broker")

OnAnswer = Callable[[Answer], None]
OnAnswered = Callable[[Answer | GoQueueError], None]
DoCommand = Callable[[Submit, Command[Any], Callable[[Any], None]], None]
"""Submit it to what this node leads. Elsewhere: it does not, and nothing was done."""


class Elsewhere(GoQueueError):
    """This node does not lead it, or not in this epoch: nothing was done."""

    retriable = True


class Serving:
    def __init__(self, revision: Callable[[], int]) -> None:
        """`revision`: of the metadata that this node acts on."""
        self._revision = revision
        self.commands: dict[str, DoCommand] = {}
        """By the kind of ledger."""
        self.others: dict[type, Callable[[Any, OnAnswered], None]] = {}
        """By the kind of request."""
        self.served = 0

    def handle(self, asked: PeerRequest) -> None:
        """A request of another node."""
        self.answer(bytes(asked.body), lambda body: asked.answer((body,)))

    def answer(self, body: bytes, on_answer: Callable[[bytes], None]) -> None:
        self.served += 1

        def give(answer: Answer) -> None:
            on_answer(encode(answer))

        try:
            request: Request = decode_request(body)
        except msgspec.MsgspecError as error:
            give(failed(Refused(Code.UNSUPPORTED_VERSION, f"a request that this node cannot read: {error}")))
            return
        try:
            if isinstance(request, Submit):
                self._submit(request, give)
            else:
                self.others[type(request)](request, partial(self._give_other, give))
        except Elsewhere:
            give(NotHere(self._revision()))
        except GoQueueError as error:
            give(failed(error))

    def _give_other(self, give: OnAnswer, answer: Answer | GoQueueError) -> None:
        if isinstance(answer, Elsewhere):
            give(NotHere(self._revision()))
        else:
            give(_told(answer) if isinstance(answer, GoQueueError) else answer)

    def _submit(self, request: Submit, give: OnAnswer) -> None:
        try:
            command = decode_command(request.tag, request.command)
        except msgspec.MsgspecError as error:
            give(failed(Refused(Code.INVALID_REQUEST, f"a command that cannot be read: {error}")))
            return
        do = self.commands.get(request.kind)
        if command is None or do is None:
            give(failed(Refused(Code.UNSUPPORTED_VERSION, f"this node does not know {request.tag!r}")))
            return

        def replied(reply: Any) -> None:
            if isinstance(reply, NotTaken):
                give(NotHere(self._revision()))
            elif isinstance(reply, GoQueueError):
                give(_told(reply))
            else:
                give(Answered(*encode_reply(request.tag, reply)))

        do(request, command, replied)


def _told(error: GoQueueError) -> Failed:
    """One who was deposed while a command was on its way says so: nobody knows whether it was done."""
    return failed(error, is_unknown=isinstance(error, NotLeader | NotCoordinator | Indeterminate))

"""A stranger who says whatever they like to a closed Kafka door: cut, repeated, mixed, replayed, all in one piece.

Without the password nobody reads a name of the cluster, and whoever has it still comes in afterwards.
"""

from random import Random
from typing import Any

import pytest
from structlog.testing import capture_logs

from goqueue.model.scram import Mechanism
from goqueue.wire.kafka.messages.metadata import ApiVersionsRequest, MetadataRequest
from goqueue.wire.kafka.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from goqueue.wire.sasl.oauthbearer import Bearer
from goqueue.wire.sasl.plain import Plain
from goqueue.wire.sasl.scram import ScramClient
from tests.tokens import token
from tests.unit.doors.kafka.test_door_fuzz import FAULTS, frame
from tests.unit.doors.kafka.test_sasl import PASSWORD, SHA_256, ClosedHouse, Talker
from tests.unit.wire.kafka.test_fuzz import mutate

TOPIC = b"orders"
"""It exists: no stranger may read its name."""
WORDS = [
    b"",
    b"\0",
    ScramClient(SHA_256, "alice", "guess", "nonce").first(),
    ScramClient(Mechanism.SHA_512, "nobody", "guess", "nonce").first(),
    b"c=biws,r=nonce,p=" + b"A" * 43 + b"=",
    Plain("alice", "guess").encode(),
    Plain("alice", "").encode(),
    b"bob\0alice\0" + PASSWORD.encode(),  # alice, to act as bob
    Bearer("a.b.c").encode(),
    Bearer(token(0)).encode(),  # it has ended long ago
]
FORGOTTEN_MS = 900_000
STRANGERS = 300
HUGE = 20_000
PIECES = [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80", b"\0", b",", b"="]
MECHANISMS = [*Mechanism, "PLAIN", "OAUTHBEARER", "GSSAPI", "", "é" * 100]


class Recorded(Talker):
    """Somebody who is overheard."""

    def __init__(self, house: ClosedHouse) -> None:
        super().__init__(house)
        self.said: list[bytes] = []

    def authenticate(self, said: bytes) -> Any:
        self.said.append(said)
        return super().authenticate(said)


class Stranger:
    """Says what dice tell."""

    def __init__(self, overheard: list[bytes], dice: Random) -> None:
        self._overheard = overheard
        self._dice = dice

    def frames(self, mechanism: str) -> list[bytes]:
        first = [frame(SaslHandshakeRequest(mechanism), 1)] if self._dice.random() < 0.8 else []
        said = [self._frame() for _ in range(self._dice.randrange(1, 4))]
        return [*first, *said, frame(MetadataRequest(None), 9)]

    def _frame(self) -> bytes:
        dice, words = self._dice, self._words()
        whole = dice.choice(
            [
                frame(SaslHandshakeRequest(dice.choice(MECHANISMS)), 1),
                frame(SaslAuthenticateRequest(words), dice.randrange(3)),
                *[frame(SaslAuthenticateRequest(words), 2)] * 6,
                frame(MetadataRequest(None), 9),
                frame(ApiVersionsRequest(), 0),
                len(words).to_bytes(4, "big") + words,  # as it is said after a handshake of version 0
            ]
        )
        return self._mutilated(whole) if dice.random() < 0.1 else whole

    def _words(self) -> bytes:
        dice, known = self._dice, self._dice.choice([*WORDS, *self._overheard])
        others = [self._mutilated(known), dice.randbytes(dice.randrange(60)), bytes(dice.randrange(HUGE))]
        return known if dice.random() < 0.7 else dice.choice(others)

    def _mutilated(self, data: bytes) -> bytes:
        dice = self._dice
        kind = dice.choice(["set", "cut", "insert", "remove"])
        return mutate(data, [(dice.random(), kind, dice.choice(PIECES))])


@pytest.mark.parametrize("mechanism", [*Mechanism, "PLAIN", "OAUTHBEARER"])
def test_strangers_learn_nothing_and_harm_nobody(mechanism: str) -> None:
    house = ClosedHouse(takes_tokens=True)
    alice = Recorded(house)
    assert alice.scram().error_code == 0
    dice = Random(mechanism)
    for number in range(STRANGERS):
        frames = Stranger(alice.said, dice).frames(mechanism)
        guest = Talker(house)
        with capture_logs() as told:
            for piece in frames if number % 2 else [b"".join(frames)]:
                if not guest.transport.closed:
                    guest.send(piece)
                    house.broker.commit()
                    house.broker.clock.advance(1000)
        assert [event for event in told if event["event"] in FAULTS] == [], frames
        assert TOPIC not in guest.transport.written, frames
        guest.leave()
        house.broker.clock.advance(FORGOTTEN_MS)  # guesses are forgotten, or all are refused after a few
    again = Talker(house)
    assert again.scram().error_code == 0
    assert again.topics() == [TOPIC.decode()]


def test_the_words_of_another_connection_are_worth_nothing() -> None:
    house = ClosedHouse()
    alice = Recorded(house)
    assert alice.scram().error_code == 0
    thief = Talker(house)
    assert thief.handshake(SHA_256).error_code == 0
    first, final = alice.said
    assert thief.authenticate(first).error_code == 0
    assert thief.authenticate(final).error_code != 0
    assert thief.is_closed()

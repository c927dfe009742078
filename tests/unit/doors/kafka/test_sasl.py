"""A closed Kafka door: what a stranger may say, how somebody shows who they are, and what ends it."""

from typing import Any

import pytest

from goqueue.broker.accounts.logins import Logins
from goqueue.broker.gate import Gate
from goqueue.doors.kafka.door import RETIRE_MS, STRANGER_MS_MAX, KafkaDoor
from goqueue.doors.kafka.limits import STRANGER_BYTES_MAX, KafkaLimits
from goqueue.doors.kafka.operations import OPERATIONS, bits
from goqueue.model.access import Kind, Operation, Rule
from goqueue.model.codes import Code
from goqueue.model.scram import Mechanism
from goqueue.wire.kafka.frames import decode_response
from goqueue.wire.kafka.messages.metadata import (
    ApiVersionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from goqueue.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from goqueue.wire.kafka.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from goqueue.wire.sasl.oauthbearer import Bearer
from goqueue.wire.sasl.plain import Plain
from goqueue.wire.sasl.scram import ScramClient
from tests.brokers import data
from tests.tokens import token, tokens
from tests.unit.doors.kafka.test_door_fuzz import Guest, House, frame

SHA_256 = Mechanism.SHA_256
PASSWORD = "secret"


class ClosedHouse(House):
    def __init__(self, limits: KafkaLimits | None = None, *, takes_tokens: bool = False) -> None:
        super().__init__()
        broker = self.broker.broker
        self.accounts = broker.accounts
        checked = tokens(broker.clock, roles_claim="roles") if takes_tokens else None
        logins = Logins(broker.accounts, broker.clock, broker.dice, b"secret", checked)
        self.gate = Gate(broker, logins=logins, is_closed=True)
        self.door = KafkaDoor(self.gate, limits)
        self.do(lambda done: self.accounts.create_user("alice", PASSWORD, ("admin",), done))

    def do(self, submit: Any) -> Any:
        replies: list[Any] = []
        submit(replies.append)
        self.broker.commit()
        (reply,) = replies
        return reply


class Talker(Guest):
    """Says one thing after the other, and reads the answer to each."""

    def __init__(self, house: ClosedHouse) -> None:
        super().__init__(house)
        self.house = house
        self._connection.peer = "127.0.0.1:5000"
        self.answered = 0

    def ask(self, message: Any, version: int, response: Any) -> Any:
        self.send(frame(message, version))
        self.house.broker.commit()
        self.house.broker.clock.advance(1000)
        replies = self.replies()
        assert len(replies) == self.answered + 1, "it was not answered"
        self.answered += 1
        return decode_response(response, version, replies[-1])[1]

    def handshake(self, mechanism: str) -> Any:
        return self.ask(SaslHandshakeRequest(mechanism), 1, SaslHandshakeResponse)

    def authenticate(self, said: bytes) -> Any:
        return self.ask(SaslAuthenticateRequest(said), 2, SaslAuthenticateResponse)

    def scram(self, name: str = "alice", password: str = PASSWORD, mechanism: Mechanism = SHA_256) -> Any:
        assert self.handshake(mechanism).error_code == Code.NONE
        client = ScramClient(mechanism, name, password, "nonce")
        first = self.authenticate(client.first())
        assert first.error_code == Code.NONE
        answer = self.authenticate(client.step(bytes(first.auth_bytes)))
        if answer.error_code == Code.NONE:
            client.step(bytes(answer.auth_bytes))
            assert client.is_done
        return answer

    def plain(self, name: str = "alice", password: str = PASSWORD) -> Any:
        assert self.handshake("PLAIN").error_code == Code.NONE
        return self.authenticate(Plain(name, password).encode())

    def oauthbearer(self, text: str) -> Any:
        assert self.handshake("OAUTHBEARER").error_code == Code.NONE
        return self.authenticate(Bearer(text).encode())

    def topics(self) -> list[str]:
        found = self.ask(MetadataRequest(None), 9, MetadataResponse)
        return [topic.name for topic in found.topics]

    def produce(self, topic: str = "orders") -> Code:
        topics = [TopicProduceData(topic, bytes(16), [PartitionProduceData(0, memoryview(bytes(data(b"x"))))])]
        found = self.ask(ProduceRequest(None, -1, 1000, topics), 9, ProduceResponse)
        return Code(found.responses[0].partition_responses[0].error_code)

    def is_closed(self) -> bool:
        return self.transport.closed


@pytest.mark.parametrize("mechanism", list(Mechanism))
def test_a_user_comes_in_by_scram(mechanism: Mechanism) -> None:
    talker = Talker(ClosedHouse())
    assert talker.scram(mechanism=mechanism).error_code == Code.NONE
    assert talker.topics() == ["orders"]
    assert [talker.produce(), talker.produce()] == [Code.NONE, Code.NONE]


def test_a_user_or_a_key_comes_in_by_plain() -> None:
    house = ClosedHouse()
    made = house.do(lambda done: house.accounts.create_key("app", ("producer",), 0, {}, done))
    for name, password in (("alice", PASSWORD), (made.text.key_id, made.text.secret.reveal())):
        talker = Talker(house)
        assert talker.plain(name, password).error_code == Code.NONE
        assert talker.produce() == Code.NONE


@pytest.mark.parametrize(("name", "password"), [("alice", "wrong"), ("nobody", PASSWORD)])
def test_a_refusal_is_the_same_for_all_and_leaves_before_the_connection_is_closed(name: str, password: str) -> None:
    for way in (Talker.scram, Talker.plain):
        talker = Talker(ClosedHouse())
        answer = way(talker, name, password)
        words = "Authentication failed: the credentials are wrong"
        assert (answer.error_code, answer.error_message) == (Code.SASL_AUTHENTICATION_FAILED, words)
        assert talker.is_closed()


@pytest.mark.parametrize("message", [MetadataRequest(None), ProduceRequest(None, -1, 1000, [])])
def test_a_stranger_who_asks_for_anything_is_closed(message: Any) -> None:
    talker = Talker(ClosedHouse())
    talker.send(frame(message, 9))
    assert (talker.replies(), talker.is_closed()) == ([], True)


def test_a_stranger_may_ask_for_versions_and_is_told_which_mechanisms_there_are() -> None:
    talker = Talker(ClosedHouse())
    talker.send(frame(ApiVersionsRequest(), 0))
    assert len(talker.replies()) == 1
    talker.answered = 1
    answer = talker.handshake("GSSAPI")
    assert answer.error_code == Code.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"]


def test_passwords_are_not_asked_for_in_clear_over_a_network() -> None:
    talker = Talker(ClosedHouse())
    talker._connection.peer = "10.0.0.9:5000"
    answer = talker.handshake("PLAIN")
    assert (answer.error_code, answer.mechanisms) == (
        Code.UNSUPPORTED_SASL_MECHANISM,
        ["SCRAM-SHA-256", "SCRAM-SHA-512"],
    )


def test_a_stranger_has_ten_seconds_and_small_frames() -> None:
    house = ClosedHouse()
    silent = Talker(house)
    house.broker.clock.advance(STRANGER_MS_MAX - 1)
    assert not silent.is_closed()
    house.broker.clock.advance(1)
    assert silent.is_closed()
    large = Talker(house)
    large.send(frame(SaslAuthenticateRequest(bytes(STRANGER_BYTES_MAX)), 2))
    assert large.is_closed()


def test_what_is_sent_behind_a_wrong_password_is_not_looked_at() -> None:
    talker = Talker(ClosedHouse())
    talker.handshake("PLAIN")
    wrong = frame(SaslAuthenticateRequest(Plain("alice", "wrong").encode()), 2)
    talker.send(wrong + frame(MetadataRequest(None), 9))
    talker.house.broker.clock.advance(1000)
    assert (len(talker.replies()), talker.is_closed()) == (2, True)


def test_authenticating_without_a_handshake_is_refused() -> None:
    assert Talker(ClosedHouse()).authenticate(b"\0alice\0secret").error_code == Code.ILLEGAL_SASL_STATE


def test_whoever_is_deleted_is_closed_at_once_and_others_stay() -> None:
    house = ClosedHouse()
    house.do(lambda done: house.accounts.create_user("bob", "x", ("producer",), done))
    alice, bob = Talker(house), Talker(house)
    alice.scram()
    bob.plain("bob", "x")
    house.do(lambda done: house.accounts.delete_user("bob", done))
    assert (alice.is_closed(), bob.is_closed()) == (False, True)
    assert alice.produce() == Code.NONE


def test_a_rule_counts_for_connections_that_are_open() -> None:
    """Also where requests take the route that was learned from those before them."""
    house = ClosedHouse()
    talker = Talker(house)
    talker.scram()
    assert [talker.produce() for _ in range(3)] == [Code.NONE] * 3
    forbids = Rule("r1", "User:alice", Kind.TOPIC, "orders", Operation.WRITE, is_allowed=False)
    house.do(lambda done: house.accounts.create_rules([forbids], done))
    assert talker.produce() == Code.TOPIC_AUTHORIZATION_FAILED
    house.do(lambda done: house.accounts.delete_rules(["r1"], done))
    assert talker.produce() == Code.NONE


def test_a_client_is_told_the_operations_that_the_rules_leave_it() -> None:
    house = ClosedHouse()
    house.do(lambda done: house.accounts.create_user("bob", "x", ("consumer",), done))
    forbids = Rule("r1", "User:bob", Kind.TOPIC, "orders", Operation.READ, is_allowed=False)
    house.do(lambda done: house.accounts.create_rules([forbids], done))
    alice, bob = Talker(house), Talker(house)
    alice.scram()
    bob.plain("bob", "x")
    asked = MetadataRequest([MetadataRequestTopic(name="orders")])
    asked.include_topic_authorized_operations = asked.include_cluster_authorized_operations = True
    told = [each.ask(asked, 10, MetadataResponse) for each in (alice, bob)]
    assert [each.topics[0].topic_authorized_operations for each in told] == [
        bits(OPERATIONS[Kind.TOPIC]),
        bits([Operation.DESCRIBE]),
    ]
    assert [each.cluster_authorized_operations for each in told] == [bits(OPERATIONS[Kind.CLUSTER]), 0]


def test_two_clients_that_send_the_same_bytes_do_not_share_a_right() -> None:
    house = ClosedHouse()
    house.do(lambda done: house.accounts.create_user("bob", "x", ("consumer",), done))
    alice, bob = Talker(house), Talker(house)
    alice.scram()
    bob.plain("bob", "x")
    assert [alice.produce(), alice.produce()] == [Code.NONE, Code.NONE]
    assert [bob.produce(), bob.produce()] == [Code.TOPIC_AUTHORIZATION_FAILED] * 2


def test_a_connection_ends_with_its_key_unless_it_shows_another() -> None:
    house = ClosedHouse()
    ends_ms = house.broker.clock.now_ms() + 60_000
    made = house.do(lambda done: house.accounts.create_key("app", ("producer",), ends_ms, {}, done))
    talker = Talker(house)
    answer = talker.plain(made.text.key_id, made.text.secret.reveal())
    assert 0 < answer.session_lifetime_ms <= 60_000
    house.broker.clock.advance(60_000 + STRANGER_MS_MAX)
    assert talker.is_closed()


def ended(shown: str) -> Talker:
    """A connection whose session has just ended."""
    house = ClosedHouse(KafkaLimits(session_ms_max=30_000), takes_tokens=True)
    talker = Talker(house)
    assert log_in(talker, shown).session_lifetime_ms == 30_000
    assert talker.produce() == Code.NONE
    house.broker.clock.advance(30_000)
    return talker


def log_in(talker: Talker, shown: str) -> Any:
    now_ms = talker.house.broker.clock.now_ms()
    return talker.scram() if shown == "password" else talker.oauthbearer(token(now_ms, sub="alice"))


@pytest.mark.parametrize("shown", ["password", "token"])
def test_a_connection_whose_session_has_ended_may_log_in_again_and_nothing_else(shown: str) -> None:
    again = ended(shown)
    assert log_in(again, shown).session_lifetime_ms == 30_000
    assert again.produce() == Code.NONE
    late = ended(shown)
    late.send(frame(MetadataRequest(None), 9))
    assert (len(late.replies()), late.is_closed()) == (late.answered, True)
    silent = ended(shown)
    assert not silent.is_closed()
    silent.house.broker.clock.advance(STRANGER_MS_MAX)
    assert silent.is_closed()


def test_a_session_that_is_renewed_in_time_does_not_end() -> None:
    house = ClosedHouse(KafkaLimits(session_ms_max=30_000))
    talker = Talker(house)
    talker.scram()
    for _ in range(5):
        house.broker.clock.advance(25_000)
        assert talker.scram().error_code == Code.NONE
        assert talker.produce() == Code.NONE


def test_an_old_connection_is_closed_when_all_is_answered() -> None:
    house = ClosedHouse(KafkaLimits(age_ms_max=60_000))
    busy, idle = Talker(house), Talker(house)
    for talker in (busy, idle):
        talker.scram()
    topics = [TopicProduceData("orders", bytes(16), [PartitionProduceData(0, memoryview(bytes(data(b"x"))))])]
    busy.send(frame(ProduceRequest(None, -1, 100_000, topics), 9))
    house.broker.clock.advance(60_000)
    assert [busy.is_closed(), idle.is_closed()] == [False, True]
    house.broker.commit()
    house.broker.clock.advance(RETIRE_MS)
    assert (len(busy.replies()), busy.is_closed()) == (busy.answered + 1, True)


def test_a_connection_stays_with_its_user() -> None:
    house = ClosedHouse()
    house.do(lambda done: house.accounts.create_user("bob", "x", (), done))
    talker = Talker(house)
    talker.scram()
    assert talker.scram().error_code == Code.NONE
    assert talker.plain("bob", "x").error_code == Code.SASL_AUTHENTICATION_FAILED
    assert talker.is_closed()


def test_guessing_is_slowed_down_until_the_right_password_does_not_help() -> None:
    house = ClosedHouse()
    logins = house.gate.logins
    assert logins is not None
    for _ in range(20):  # of which one a second is forgiven
        logins.fail("127.0.0.1", "alice")
    answer = Talker(house).plain()
    assert answer.error_message == "Authentication failed: too many logins have failed; try again later"


# -- tokens


def test_a_token_comes_in_with_its_roles_and_until_it_ends() -> None:
    house = ClosedHouse(takes_tokens=True)
    now_ms = house.broker.clock.now_ms()
    talker, nobody = Talker(house), Talker(house)
    answer = talker.oauthbearer(token(now_ms, sub="carol", roles=["producer"]))
    assert answer.error_code == Code.NONE
    assert 320_000 < answer.session_lifetime_ms <= 330_000
    assert talker.produce() == Code.NONE
    assert nobody.oauthbearer(token(now_ms, sub="dave")).error_code == Code.NONE
    assert nobody.produce() == Code.TOPIC_AUTHORIZATION_FAILED
    forbids = Rule("r1", "User:carol", Kind.TOPIC, "orders", Operation.WRITE, is_allowed=False)
    house.do(lambda done: house.accounts.create_rules([forbids], done))
    assert talker.produce() == Code.TOPIC_AUTHORIZATION_FAILED


def test_a_wrong_token_is_refused_and_says_why() -> None:
    house = ClosedHouse(takes_tokens=True)
    answer = Talker(house).oauthbearer(token(house.broker.clock.now_ms(), iss="https://elsewhere"))
    words = "Authentication failed: the token is of another issuer"
    assert (answer.error_code, answer.error_message) == (Code.SASL_AUTHENTICATION_FAILED, words)


def test_tokens_are_offered_where_they_are_taken_and_not_in_clear() -> None:
    assert "OAUTHBEARER" not in Talker(ClosedHouse()).handshake("?").mechanisms
    house = ClosedHouse(takes_tokens=True)
    assert "OAUTHBEARER" in Talker(house).handshake("?").mechanisms
    far = Talker(house)
    far._connection.peer = "10.0.0.9:5000"
    assert "OAUTHBEARER" not in far.handshake("?").mechanisms

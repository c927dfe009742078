"""The client shows who it is: against the real door, on sockets."""

import pytest

from goqueue.broker.accounts.logins import Logins
from goqueue.broker.gate import Gate
from goqueue.client import BrokerRefused, InvalidArgument, Producer, Security
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.doors.kafka.limits import KafkaLimits
from goqueue.testing import broker
from tests.unit.doors.http.test_credentials import done_of
from tests.unit.testing.loops import in_loop


@in_loop
async def test_a_producer_logs_in_with_a_password_or_a_key_and_not_without() -> None:
    async with broker(clock="real") as b:
        node = b.broker
        await b.create_topic("orders")
        gate = Gate(node, logins=Logins(node.accounts, node.clock, node.dice, b"secret"), is_closed=True)
        door = KafkaDoor(gate, KafkaLimits(gather_ms=0))
        _, port = await door.open("127.0.0.1", 0)
        server = f"127.0.0.1:{port}"
        await done_of(lambda done: node.accounts.create_user("alice", "secret", ("producer",), done))
        made = await done_of(lambda done: node.accounts.create_key("app", ("producer",), 0, {}, done))
        shown = [Security(user="alice", password="secret", mechanism=each) for each in ("PLAIN", "SCRAM-SHA-512")]
        for security in (*shown, Security(api_key=made.text.reveal())):
            async with Producer(server, security=security) as producer:
                await producer.send("orders", b"x", partition=0)
        with pytest.raises(BrokerRefused, match="credentials are wrong"):
            async with Producer(server, security=Security(user="alice", password="wrong")) as producer:
                await producer.send("orders", b"x", partition=0)
        assert len(await b.read("orders", partition=0)) == 3
        await door.close()


def test_secrets_are_not_shown_and_mistakes_are_told() -> None:
    assert "secret" not in repr(Security(user="alice", password="secret"))
    for wrong in (
        {"user": "alice"},
        {"api_key": "secret"},
        {"api_key": f"gqk_k{'0' * 16}_{'0' * 64}", "user": "alice", "password": "x"},
        {"user": "alice", "password": "x", "mechanism": "GSSAPI"},
    ):
        with pytest.raises(InvalidArgument):
            Security(**wrong)  # type: ignore[arg-type]

"""`goqueue serve --processes 2`, closed and with TLS on every API: one first key, accounts that all members know."""

import asyncio
import os
import signal
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import httpx
import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from goqueue.client import Security
from goqueue.client.grpc import GrpcClient
from tests.certificates import Authority, Pair
from tests.integration.process import DEADLINE_S, wait_until
from tests.integration.test_processes import PARTITIONS, Processes

CONNECTIONS = 12
"""Each to one of the members, by chance: one in 2,000 runs would meet one of them only."""


class Closed(Processes):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory, is_closed=True)
        self.host = self.endpoint[0]
        self._authority = Authority(directory)
        server = self.certificate()
        files = f"cert_file={server.cert}&key_file={server.key}"
        listeners = [f"kafka://{self.address}?protocol=SASL_SSL&{files}"]
        listeners += [f"http://{self.host}:8080?protocol=SSL&{files}"]
        listeners += [f"grpc://{self.grpc}?protocol=SSL&{files}"]
        self.arguments = (*self.arguments, "--listeners", ",".join(listeners))

    def certificate(self) -> Pair:
        return self._authority.sign("server", dns=["localhost"], addresses=[self.host])

    @property
    def ca(self) -> str:
        return str(self._authority.ca)

    @property
    def url(self) -> str:
        return super().url.replace("http:", "https:")

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """On a connection of its own."""
        return httpx.request(method, self.url + path, verify=ssl.create_default_context(cafile=self.ca), **options)

    def by_key(self, address: str, key: str) -> dict[str, Any]:
        """For librdkafka."""
        user, secret = key.split("_")[1:]
        return {
            "bootstrap.servers": address,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": self.ca,
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": secret,
        }

    def serial(self, address: str) -> str:
        """Of the certificate that a new connection is shown."""
        host, _, port = address.rpartition(":")
        context = ssl.create_default_context(cafile=self.ca)
        with (
            socket.create_connection((host, int(port)), DEADLINE_S) as plain,
            context.wrap_socket(plain, server_hostname=host) as wrapped,
        ):
            shown: Any = wrapped.getpeercert()
            return str(shown["serialNumber"])


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Closed]:
    node = Closed(tmp_path)
    try:
        node.start()
        yield node
    finally:
        node.clean_up()


def test_every_member_asks_who_it_is_and_knows_the_accounts_that_any_of_them_made(closed: Closed) -> None:
    members = closed.addresses.split(",")
    assert list(closed.data_dir.parent.rglob("bootstrap.key")) == [closed.data_dir.parent / "bootstrap.key"]
    first = {"X-API-Key": closed.first_key}
    assert {closed.ask("GET", "/topics").status_code for _ in range(CONNECTIONS)} == {401}
    assert {closed.ask("GET", "/topics", headers=first).status_code for _ in range(CONNECTIONS)} == {200}
    made = closed.ask("POST", "/admin/keys", headers=first, json={"name": "worker", "roles": ["admin"]})
    assert made.status_code in (200, 201), made.text
    key = made.json()["key"]
    publish_to_all(closed, members, key)
    with pytest.raises(ck.KafkaException):  # noqa: PT012  of either member
        for address in members:
            wrong = closed.by_key(address, key[:-4] + "0000")
            AdminClient({**wrong, "socket.timeout.ms": 5000}).list_topics(timeout=5)
    shown = {"X-API-Key": key}
    assert {closed.ask("GET", "/topics/orders", headers=shown).status_code for _ in range(CONNECTIONS)} == {200}
    assert asyncio.run(asyncio.wait_for(over_grpc(closed, key), DEADLINE_S)) == {b"%d" % each for each in range(8)}
    assert closed.ask("GET", "/topics", headers=first).status_code == 401, "the first key ends with the first admin"
    closed.ask("DELETE", f"/admin/keys/{key.split('_')[1]}", headers=shown).raise_for_status()
    wait_until(
        lambda: {closed.ask("GET", "/topics", headers=shown).status_code for _ in range(CONNECTIONS)} == {401},
        "the end of the key at all members",
    )


def publish_to_all(closed: Closed, members: list[str], key: str) -> None:
    """Through each member by itself, to partitions of both."""
    admin = AdminClient(closed.by_key(members[0], key))
    for future in admin.create_topics([NewTopic("orders", PARTITIONS, 1)]).values():
        future.result(DEADLINE_S)
    described = admin.list_topics("orders", DEADLINE_S)
    assert {each.leader for each in described.topics["orders"].partitions.values()} == {1, 2}
    for number, address in enumerate(members):
        producer = ck.Producer(closed.by_key(address, key))
        for partition in range(PARTITIONS):
            producer.produce("orders", b"%d" % (number * PARTITIONS + partition), partition=partition)
        assert producer.flush(DEADLINE_S) == 0


async def over_grpc(closed: Closed, key: str) -> set[bytes]:
    async with GrpcClient(closed.grpc, security=Security(api_key=key, tls=True, ca_file=closed.ca)) as client:
        return {each.value async for each in client.consume("orders", until_end=True)}


def test_all_members_show_a_new_certificate_after_one_signal(closed: Closed) -> None:
    members = closed.addresses.split(",")
    before = {closed.serial(address) for address in members}
    assert len(before) == 1
    closed.certificate()
    os.kill(closed.pid, signal.SIGHUP)
    wait_until(lambda: not before & {closed.serial(address) for address in members}, "the new certificate everywhere")
    assert len({closed.serial(address) for address in members}) == 1

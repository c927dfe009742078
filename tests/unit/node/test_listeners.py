"""Which listeners there are, and which of them may be opened."""

import asyncio
from pathlib import Path

import pytest

from goqueue.model.errors import InvalidSettings
from goqueue.model.listener import Api, ClientAuth, Protocol
from goqueue.model.placements import NodeInfo
from goqueue.node.listeners import exposed, is_loopback, plans, refusal
from goqueue.node.settings import Settings, read_settings
from goqueue.node.values import Address

FILES = {"tls_cert_file": "server.pem", "tls_key_file": "server.key", "tls_ca_file": "ca.pem"}


def read(listeners: str, **more: str) -> Settings:
    return read_settings({"listeners": listeners, **more}, environ={})


def test_the_old_settings_are_the_short_form_of_one_listener_each() -> None:
    settings = read_settings({"kafka": "127.0.0.1:1", "kafka_advertised": "mq:2"}, environ={})
    assert [(str(plan), plan.told) for plan in plans(settings)] == [
        ("kafka://127.0.0.1:1 (PLAINTEXT, PLAINTEXT)", ("mq", 2)),
        ("http://127.0.0.1:8080 (PLAINTEXT, PLAINTEXT)", ("127.0.0.1", 8080)),
        ("grpc://127.0.0.1:9000 (PLAINTEXT, PLAINTEXT)", ("127.0.0.1", 9000)),
    ]


def test_listeners_take_the_place_of_the_short_form_of_their_own_api_only() -> None:
    settings = read(
        "kafka://127.0.0.1:1,kafka://127.0.0.1:2?name=safe&protocol=ssl&advertised=mq:3&client_auth=require", **FILES
    )
    first, second, *others = plans(settings)
    assert (first.listener.name, first.listener.protocol, first.files) == ("PLAINTEXT", Protocol.PLAINTEXT, None)
    assert (second.listener.name, second.listener.client_auth, second.told) == ("safe", ClientAuth.REQUIRE, ("mq", 3))
    assert second.files is not None
    assert (second.files.cert, second.files.ca) == (Path("server.pem"), Path("ca.pem"))
    assert [plan.listener.api for plan in others] == [Api.HTTP, Api.GRPC]


def test_a_file_says_the_same_in_tables(tmp_path: Path) -> None:
    config = tmp_path / "goqueue.toml"
    config.write_text(
        'tls_cert_file = "a"\ntls_key_file = "b"\n[[listeners]]\napi = "kafka"\naddress = "127.0.0.1:2"\n'
        'name = "safe"\nprotocol = "SSL"\n'
    )
    given = "kafka://127.0.0.1:2?name=safe&protocol=SSL"
    from_file = read_settings({}, config=str(config), environ={}).listeners
    assert from_file == read(given, tls_cert_file="a", tls_key_file="b").listeners
    assert str(from_file[0]) == given


@pytest.mark.parametrize(
    "listeners",
    [
        "ftp://127.0.0.1:1",
        "kafka://127.0.0.1",
        "kafka://127.0.0.1:1?protocol=TLS",
        "kafka://127.0.0.1:1?colour=red",
        "kafka://127.0.0.1:1/path",
        "kafka://127.0.0.1:1,kafka://127.0.0.1:2",  # one name for two
        "http://127.0.0.1:1?protocol=SASL_SSL",
        "kafka://127.0.0.1:1?client_auth=require",  # without TLS
        "kafka://127.0.0.1:1?name=a&name=b",
    ],
)
def test_what_is_no_listener_is_refused(listeners: str) -> None:
    with pytest.raises(InvalidSettings, match="--listeners"):
        read(listeners)


@pytest.mark.parametrize(
    ("listeners", "more", "words"),
    [
        ("kafka://127.0.0.1:1?protocol=SSL", {}, "TLS needs a certificate"),
        (
            "kafka://127.0.0.1:1?protocol=SSL&client_auth=require",
            {"tls_cert_file": "a", "tls_key_file": "b"},
            "name their authority",
        ),
        ("grpc://127.0.0.1:1?protocol=SSL&client_auth=request", FILES, "none or require"),
        ("", {"peer_ca_file": "a"}, "all of them, or none"),
        ("", {"dev": "on", "insecure": "on"}, "one of them"),
        ("kafka://0.0.0.0:1?name=x", {"etcd": "127.0.0.1:2379"}, "other nodes cannot dial that"),
    ],
)
def test_what_cannot_work_is_said_before_the_start(listeners: str, more: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidSettings, match=words):
        read(listeners, **more)


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("127.0.0.1", True),
        ("127.9.8.7", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
    ],
)
def test_loopback_is_what_only_this_machine_reaches(host: str, is_own: bool) -> None:
    assert asyncio.run(is_loopback(Address(host, 9092))) is is_own


def why_not(**flags: str) -> str:
    settings = read_settings(flags, environ={})
    return refusal(settings, asyncio.run(exposed(settings)))


def test_an_address_that_others_reach_needs_tls_and_authentication() -> None:
    assert why_not() == ""
    assert why_not(dev="on") == ""
    assert "lacks TLS and authentication" in why_not(kafka="0.0.0.0:9092", authentication="off")
    assert "(PLAINTEXT, PLAINTEXT) lacks TLS. " in why_not(kafka="0.0.0.0:9092")
    safe = "kafka://0.0.0.0:9092?protocol=SSL"
    assert why_not(listeners=safe, **FILES) == ""
    assert "lacks authentication" in why_not(listeners=safe, authentication="off", **FILES)
    for closed in (
        f"{safe}&client_auth=require",
        "kafka://0.0.0.0:9092?protocol=SASL_SSL",
        "http://0.0.0.0:8080?protocol=SSL&authentication=required",
    ):
        assert why_not(listeners=closed, authentication="off", **FILES) == ""
    assert "lacks TLS" in why_not(listeners="kafka://0.0.0.0:9092?protocol=SASL_PLAINTEXT")


def test_a_node_is_closed_unless_it_is_told_to_be_open() -> None:
    for flags, is_closed in (
        ({}, True),
        ({"dev": "on"}, False),
        ({"insecure": "on"}, False),
        ({"insecure": "on", "authentication": "on"}, True),
        ({"authentication": "off"}, False),
    ):
        settings = read_settings(flags, environ={})
        assert settings.is_closed is is_closed
        assert [plan.listener.requires_authentication for plan in plans(settings)] == [is_closed] * 3
    with pytest.raises(InvalidSettings, match="dev and authentication = on"):
        read_settings({"dev": "on", "authentication": "on"}, environ={})


def test_insecure_opens_anything_and_dev_nothing_that_others_reach() -> None:
    assert why_not(kafka="0.0.0.0:9092", insecure="on") == ""
    assert "--dev" in why_not(kafka="0.0.0.0:9092", dev="on")
    mutual = "kafka://0.0.0.0:9092?protocol=SSL&client_auth=require"
    assert "--dev" in why_not(listeners=mutual, dev="on", **FILES)


def test_nodes_speak_tls_unless_they_are_on_one_machine() -> None:
    cluster = {"etcd": "127.0.0.1:2379", "peer": "10.0.0.1:9192"}
    assert "TLS between nodes" in why_not(**cluster)
    assert why_not(**cluster, peer_ca_file="a", peer_cert_file="b", peer_key_file="c") == ""


def test_clients_are_told_addresses_of_their_listener_and_old_nodes_have_one() -> None:
    node = NodeInfo(1, 1, kafka=("a", 1), listeners=(("PLAINTEXT", ("a", 1)), ("safe", ("b", 2))))
    assert (node.kafka_of("PLAINTEXT"), node.kafka_of("safe"), node.kafka_of("other")) == (("a", 1), ("b", 2), None)
    assert NodeInfo(1, 1, kafka=("a", 1)).kafka_of("safe") == ("a", 1)

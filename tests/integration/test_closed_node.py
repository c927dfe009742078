"""A node as `goqueue serve` starts it: closed, with one key that its owner is told, and a way back for who lost it."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from goqueue.cli.exits import EXIT_DENIED, EXIT_FAILED, EXIT_USAGE
from tests.integration.goqueue_command import Command
from tests.integration.process import DEADLINE_S, Node
from tests.integration.terminal import terminal

KEY = f"gqk_k0123456789abcdef_{'ab' * 32}"


@pytest.fixture
def closed(tmp_path: Path) -> object:
    node = Node(tmp_path, is_closed=True)
    yield node
    node.clean_up()


def test_the_first_key_opens_every_way_in_and_ends_with_the_first_admin(closed: Node, tmp_path: Path) -> None:
    closed.start()
    goqueue = Command(tmp_path, closed.url)
    assert "credentials are needed" in goqueue.run("topic", "list", code=EXIT_DENIED).err
    file = tmp_path / "bootstrap.key"
    goqueue.run("topic", "create", "orders", "--api-key-file", str(file))
    user, secret = closed.first_key.split("_")[1:]
    failed: list[object] = []
    for password in (secret, closed.first_key):
        producer = Producer(
            {
                "bootstrap.servers": closed.address,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": user,
                "sasl.password": password,
            }
        )
        producer.produce("orders", b"one", on_delivery=lambda error, _: failed.append(error))
        assert producer.flush(DEADLINE_S) == 0
    assert failed == [None, None]
    goqueue.environment["GOQUEUE_API_KEY_FILE"] = str(file)
    goqueue.run("user", "create", "root", "--role", "admin", "--password-file", "-", stdin="secret\n")
    assert "credentials are wrong" in goqueue.run("topic", "list", code=EXIT_DENIED).err


def test_who_has_lost_every_key_gets_another_one_beside_the_stopped_node(closed: Node, tmp_path: Path) -> None:
    goqueue = Command(tmp_path, closed.url)
    reset = ("admin", "reset", "--data-dir", str(closed.data_dir))
    assert "is no data directory" in goqueue.run(*reset, code=EXIT_FAILED).err
    closed.start()
    first = closed.first_key
    goqueue.environment["GOQUEUE_API_KEY"] = first
    goqueue.run("user", "create", "root", "--role", "admin", "--password-file", "-", stdin="secret\n")
    assert "is held by pid" in goqueue.run(*reset, code=EXIT_FAILED).err
    closed.stop()
    goqueue.run(*reset)
    closed.start()
    assert closed.first_key != first
    goqueue.environment["GOQUEUE_API_KEY"] = closed.first_key
    assert [each["name"] for each in goqueue.json("user", "list")] == ["root"]
    second = closed.first_key
    closed.stop()
    closed.start()
    assert closed.first_key == second


def test_a_key_may_come_from_the_environment_which_is_not_passed_on(tmp_path: Path) -> None:
    goqueue = Command(tmp_path)
    ports = [word for door in ("kafka", "http", "grpc") for word in (f"--{door}", "127.0.0.1:0")]
    goqueue.environment["GOQUEUE_BOOTSTRAP_KEY"] = "secret"
    said = goqueue.run("serve", *ports, code=EXIT_FAILED)
    assert "GOQUEUE_BOOTSTRAP_KEY: it has to be one key" in said.err
    goqueue.environment["GOQUEUE_BOOTSTRAP_KEY"] = KEY
    with terminal(goqueue, "serve", *ports) as seen:
        seen.wait_for("stop  Ctrl+C")
        seen.press(b"\x03")
        assert seen.end() == 0
    assert KEY not in seen.seen
    assert "sasl.username=k0123456789abcdef" in seen.seen
    assert not (tmp_path / "bootstrap.key").exists()


def test_a_person_at_a_terminal_is_shown_the_key_once_and_how_to_use_it(tmp_path: Path) -> None:
    goqueue = Command(tmp_path)
    ports = [word for door in ("kafka", "http", "grpc") for word in (f"--{door}", "127.0.0.1:0")]
    for is_first in (True, False):
        with terminal(goqueue, "serve", *ports) as seen:
            seen.wait_for("stop  Ctrl+C")
            seen.press(b"\x03")
            assert seen.end() == 0
        assert seen.seen.count("gqk_k") == is_first
        assert "closed: clients show" in seen.seen
        assert ("X-API-Key: $GOQUEUE_API_KEY" in seen.seen) is is_first
    with terminal(goqueue, "serve", "--dev", *ports) as seen:
        seen.wait_for("stop  Ctrl+C")
        seen.press(b"\x03")
        assert seen.end() == 0
    assert "everybody on this machine may do everything" in seen.seen
    assert "closed" not in seen.seen


def test_dev_and_authentication_exclude_each_other(tmp_path: Path) -> None:
    said = Command(tmp_path).run("serve", "--dev", "--authentication", "on", code=EXIT_USAGE)
    assert "dev and authentication = on: one of them" in said.err

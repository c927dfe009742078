"""A context with a user: every command works with it against a closed node, and nothing tells the password."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from goqueue.cli.commands.every import COMMANDS
from goqueue.cli.exits import EXIT_DENIED, EXIT_USAGE
from tests.certificates import Authority
from tests.integration.cli_walk import STEPS
from tests.integration.goqueue_command import Command
from tests.integration.process import Node, own_host
from tests.integration.terminal import terminal
from tests.integration.test_cli_walk import Walk

PASSWORD = 'seven "little" pears\\'
KEY_PASSWORD = "for-the-key"


class Closed:
    """TLS on all, and certificates asked for over Kafka."""

    def __init__(self, directory: Path) -> None:
        host = own_host()
        authority = Authority(directory)
        pair = authority.sign("node", addresses=[host])
        self.client = authority.sign("client", cn="alice", password=KEY_PASSWORD.encode())
        self.ca = authority.ca
        listeners = f"kafka://{host}:9092?protocol=SASL_SSL&client_auth=require,http://{host}:8080?protocol=SSL"
        tls = ("--tls-cert-file", str(pair.cert), "--tls-key-file", str(pair.key), "--listeners", listeners)
        ca = ("--tls-ca-file", str(authority.ca))
        self.node = Node(directory, *tls, *ca, is_closed=True, host=host)
        self.url = f"https://{host}:8080"


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path, is_closed=True)
    yield node.start()
    node.clean_up()


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Closed]:
    made = Closed(tmp_path)
    made.node.start()
    yield made
    made.node.clean_up()


def secret_file(path: Path, text: str) -> str:
    path.write_text(f"{text}\n")
    path.chmod(0o600)
    return str(path)


def with_admin(directory: Path, server: str, *beside: str) -> tuple[Command, str]:
    """A home without contexts, and the file with the password of the admin `root`."""
    home = directory / "home"
    home.mkdir()
    goqueue = Command(home)
    file = secret_file(home / "root.txt", PASSWORD)
    first = ("--server", server, "--api-key-file", str(directory / "bootstrap.key"), *beside)
    goqueue.run("user", "create", "root", "--role", "admin", "--password-file", file, *first)
    return goqueue, file


@pytest.mark.second_layer
def test_every_command_works_through_the_context_of_a_user(plain: Node, tmp_path: Path) -> None:
    goqueue, file = with_admin(tmp_path, plain.url)
    where = ("--server", plain.url, "--kafka", plain.address)
    goqueue.run("config", "set-context", "live", *where, "--user", "root", "--password-file", file)
    remote = {each.words for each in COMMANDS if each.is_remote and each.words.split()[0] not in ("config", "doctor")}
    walk = Walk(goqueue, plain, "json")
    done = set()
    for step in STEPS:
        command = max((each for each in remote if f"{step.words} ".startswith(f"{each} ")), key=len, default=None)
        if command is not None and command != "audit":
            walk.run(step)
            done.add(command)
    assert remote - done == {"audit", *(each for each in remote if each.startswith("pipeline "))}
    told = goqueue.json("audit", "--principal", "User:root")
    assert {"create_tenant", "change_user", "create_key"} <= {each["operation"] for each in told}
    assert PASSWORD not in json.dumps(told)
    measured = goqueue.json("bench", "produce", "--context", "live", "--messages", "50", "--sasl", "SCRAM-SHA-512")
    assert measured["bench"] == "produce"


def test_certificates_passwords_of_keys_and_users_go_together(closed: Closed, tmp_path: Path) -> None:
    goqueue, file = with_admin(tmp_path, closed.url, "--ca", str(closed.ca))
    shown = ("--ca", str(closed.ca), "--cert", str(closed.client.cert), "--key", str(closed.client.key))
    unlock = ("--key-password-file", secret_file(goqueue.home / "unlock", KEY_PASSWORD))
    where = ("--server", closed.url, "--kafka", closed.node.address)
    user = ("--user", "root", "--password-file", file, "--sasl", "SCRAM-SHA-512")
    said = goqueue.run("config", "set-context", "live", *where, *shown, *unlock, *user, "-o", "json")
    goqueue.run("topic", "create", "orders", "-p", "1")
    goqueue.run("produce", "orders", "-m", "one")
    assert [each["value"] for each in goqueue.json_lines("consume", "orders", "--from-beginning")] == ["one"]
    assert goqueue.json("bench", "latency", "--context", "live", "--messages", "20")["figures"]
    told = said.out + goqueue.run("config", "view").out + goqueue.run("config", "get-contexts").out
    assert (PASSWORD in told, KEY_PASSWORD in told, "root" in told) == (False, False, True)
    wrong = secret_file(goqueue.home / "wrong.txt", "guessed")
    refused = goqueue.run("topic", "list", "--user", "root", "--password-file", wrong, code=EXIT_DENIED)
    assert ("credentials are wrong" in refused.err, "guessed" in refused.err) == (True, False)


def test_a_password_is_asked_for_and_kept_for_its_owner_alone(plain: Node, tmp_path: Path) -> None:
    goqueue, _ = with_admin(tmp_path, plain.url)
    make = ("config", "set-context", "live", "--server", plain.url, "--user", "root")
    goqueue.run(*make)
    assert "nobody to ask for the password of root" in goqueue.run("topic", "list", code=EXIT_USAGE).err
    with terminal(goqueue, "topic", "list", "-o", "json") as seen:
        seen.wait_for("password of root:")
        seen.press(f"{PASSWORD}\n".encode())
        assert (seen.end(), PASSWORD in seen.seen) == (0, False)
    with terminal(goqueue, *make, "--password") as seen:
        seen.wait_for("password of root:")
        seen.press(f"{PASSWORD}\n".encode())
        assert (seen.end(), PASSWORD in seen.seen) == (0, False)
    assert goqueue.json("topic", "list") == []
    file = goqueue.home / ".goqueue" / "config.yaml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert goqueue.json("config", "view")["contexts"]["live"]["password"] == "(hidden)"
    assert goqueue.json("config", "view", "--raw")["contexts"]["live"]["password"] == PASSWORD
    file.chmod(0o644)
    assert f"chmod 600 {file}" in goqueue.run("topic", "list").err


def test_a_context_has_one_login_and_flags_go_before_it(plain: Node, tmp_path: Path) -> None:
    goqueue, file = with_admin(tmp_path, plain.url)
    key = secret_file(goqueue.home / "other.key", goqueue.json(
        "key", "create", "ops", "--role", "viewer", "--server", plain.url, "--user", "root", "--password-file", file
    )["key"])  # fmt: skip
    goqueue.run("config", "set-context", "live", "--server", plain.url, "--user", "root", "--password-file", "root.txt")
    viewed = goqueue.json("config", "view")
    assert (viewed["now"]["user"], viewed["now"]["told-by"]["user"]) == ("root", "context live")
    assert viewed["contexts"]["live"]["password-file"] == file  # wherever one is
    goqueue.run("topic", "create", "orders")
    assert goqueue.run("topic", "delete", "orders", "--force", "--api-key-file", key, code=EXIT_DENIED).out == ""
    goqueue.environment["GOQUEUE_API_KEY_FILE"] = key
    goqueue.run("topic", "create", "more", code=EXIT_DENIED)
    goqueue.run("topic", "create", "more", "--context", "live")
    both = goqueue.run("topic", "list", "--api-key-file", key, "--user", "root", code=EXIT_USAGE).err
    assert "an API key and a user; say one of them" in both
    del goqueue.environment["GOQUEUE_API_KEY_FILE"]
    goqueue.run("config", "set-context", "live", "--api-key-file", key)
    assert set(goqueue.json("config", "view")["contexts"]["live"]) == {"server", "api-key-file"}
    alone = goqueue.run("config", "set-context", "live", "--password-file", file, code=EXIT_USAGE).err
    assert "say --user" in alone
    Path(file).chmod(0o644)
    assert f"chmod 600 {file}" in goqueue.run("topic", "list", "--user", "root", "--password-file", file).err
    refused = goqueue.run("topic", "list", "--user", "root", "--password", PASSWORD, code=EXIT_USAGE).err
    assert ("GOQUEUE_PASSWORD" in refused, PASSWORD in refused) == (True, False)

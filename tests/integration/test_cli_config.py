"""`goqueue config`, the precedence of what names a server, and `goqueue doctor`."""

import stat
from pathlib import Path

from tests.integration.goqueue_command import Command
from tests.integration.process import Node

NOWHERE = "http://127.0.0.1:9"


def test_contexts_from_making_to_deleting(goqueue: Command, node: Node) -> None:
    goqueue.environment.pop("GOQUEUE_SERVER")
    assert "goqueue config set-context" in goqueue.run("config", "get-contexts").err
    assert goqueue.run("config", "set-context", "here", "--server", node.url).out == "made context here\n"
    refused = goqueue.run("config", "set-context", "there", "--server", NOWHERE, "--api-key", "secret", code=2)
    assert ("GOQUEUE_API_KEY" in refused.err, "secret" in refused.err) == (True, False)
    key = goqueue.home / "key"
    key.write_text("secret\n")
    goqueue.run("config", "set-context", "there", "--server", NOWHERE, "--api-key-file", str(key), "--timeout", "5s")
    file = goqueue.home / ".goqueue" / "config.yaml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert goqueue.table("config", "get-contexts") == [
        ["*", "here", node.url, "-", "-", "-"],
        ["there", NOWHERE, "5s", "set", "-"],
    ]
    assert [each["name"] for each in goqueue.json("config", "get-contexts")] == ["here", "there"]

    viewed = goqueue.json("config", "view")
    assert (viewed["current-context"], viewed["now"]["server"]) == ("here", node.url)
    assert viewed["contexts"]["there"]["api-key-file"] == str(key)
    assert "secret" not in goqueue.run("config", "view").out
    assert goqueue.json("config", "view", "--raw", "--context", "there")["now"]["api-key"] == "secret"

    goqueue.run("topic", "list")
    goqueue.run("config", "use-context", "there")
    goqueue.run("topic", "list", code=5)
    goqueue.run("config", "delete-context", "there")
    assert goqueue.json("config", "view")["current-context"] is None
    assert "there is no context 'there'" in goqueue.run("config", "use-context", "there", code=2).err
    assert "--server" in goqueue.run("config", "set-context", "empty", code=2).err
    for nowhere in ("ftp://x", "not an address", "http://"):
        assert "expected an HTTP address" in goqueue.run("config", "set-context", "a", "-s", nowhere, code=2).err


def test_flags_go_before_environment_before_file_before_default(goqueue: Command) -> None:
    servers = {name: f"http://{name}:1" for name in ("flag", "variable", "current", "chosen")}

    def now(*words: str) -> str:
        return str(goqueue.json("config", "view", *words)["now"]["server"])

    goqueue.environment.pop("GOQUEUE_SERVER")
    assert now() == "http://127.0.0.1:8080"
    for name in ("current", "chosen"):
        goqueue.run("config", "set-context", name, "--server", servers[name])
    assert now() == servers["current"]
    goqueue.environment["GOQUEUE_CONTEXT"] = "chosen"
    assert now() == servers["chosen"]
    goqueue.environment["GOQUEUE_SERVER"] = servers["variable"]
    assert now() == servers["variable"]
    assert now("--context", "current") == servers["current"]
    assert now("--context", "current", "--server", servers["flag"]) == servers["flag"]
    goqueue.environment["GOQUEUE_API_KEY"] = "from-the-environment"
    assert goqueue.json("config", "view", "--raw")["now"]["api-key"] == "from-the-environment"
    assert "GOQUEUE_API_KEY" in goqueue.run("topic", "list", "--api-key", "k", code=2).err


def test_a_file_that_cannot_be_used(goqueue: Command) -> None:
    file = goqueue.home / ".goqueue" / "config.yaml"
    file.parent.mkdir()
    for text in ("contexts: [", "contexts: {a: {sever: x}}", "- 1", "current-context: [a]"):
        file.write_text(text, "utf-8")
        said = goqueue.run("topic", "list", code=2)
        assert str(file) in said.err
    file.write_text("contexts: {a: {server: 'http://a:1', api-key: k}}", "utf-8")
    file.chmod(0o644)
    assert f"chmod 600 {file}" in goqueue.run("config", "get-contexts").err


def test_doctor(goqueue: Command, node: Node) -> None:
    found = {each["check"]: each for each in goqueue.json("doctor", "--data-dir", str(node.data_dir))}
    assert found["data directory"]["state"] == "ok"
    assert found["in use"]["found"] == "a node runs on it"
    assert found["server"]["state"] == "ok"
    assert found["server clock"]["state"] == "ok"
    assert {"filesystem", "disk space", "sync", "limits", "clock"} <= found.keys()
    (goqueue.home / "file").touch()
    said = goqueue.run("doctor", "--data-dir", "file", "--server", NOWHERE, code=1)
    assert "file is no directory" in said.out
    assert "start one with goqueue serve" in said.out


def test_repair_brings_back_a_node_without_metadata(goqueue: Command, tmp_path: Path) -> None:
    node = Node(tmp_path)
    here = ("--data-dir", str(node.data_dir))
    try:
        node.start()
        goqueue.run("topic", "create", "orders", "--partitions", "2", "--server", node.url)
        assert goqueue.run("repair", *here, code=1).err.startswith("goqueue: ")
        wrong = goqueue.run("repair", "--data-dir", str(tmp_path), "--dry-run", code=1)
        assert f"{tmp_path} is no data directory" in wrong.err
        node.stop()
        assert "nothing to repair" in goqueue.run("repair", *here).out
        for file in (node.data_dir / "logs" / "@metadata" / "0").glob("*.log"):
            file.unlink()
        said = goqueue.run("serve", *here, code=1)
        assert "it has no segment, though it once reached" in said.err
        assert "goqueue repair --dry-run" in said.err
        found = {each["check"]: each for each in goqueue.json("doctor", *here, "--server", NOWHERE, code=1)}
        assert (found["metadata"]["state"], "goqueue repair" in found["metadata"]["advice"]) == ("fail", True)
        assert goqueue.json("repair", *here, "--dry-run")["restored"] == ["orders"]
        assert "1 topics were restored: orders" in goqueue.run("repair", *here).out
        node.start()
        assert [each["name"] for each in goqueue.json("topic", "list", "--server", node.url)] == ["orders"]
        node.stop()
        found = {each["check"]: each for each in goqueue.json("doctor", *here, "--server", NOWHERE)}
        assert found["logs"]["state"] in ("ok", "warn")
    finally:
        node.clean_up()

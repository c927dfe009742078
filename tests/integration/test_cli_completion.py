"""Completion, in the shells that are installed, and with a node that knows names."""

import pytest

from tests.integration.conftest import CreateTopic
from tests.integration.goqueue_command import Command
from tests.integration.shells import SHELLS, prepare

ALWAYS = {"--help", "-h", "--version"}
"""Some shells offer them, some only after a dash."""
OF_TOPICS = {"list", "create", "describe", "alter", "trim", "purge", "pause", "resume", "compact", "delete"}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_tab_offers_what_fits(goqueue: Command, make_topic: CreateTopic, group: str, shell: str) -> None:
    topic = make_topic(1)
    goqueue.run("produce", topic, "-m", "x")
    goqueue.run("consume", topic, "--group", group, "-n", "1")
    goqueue.run("config", "set-context", "harbour", "--server", goqueue.environment["GOQUEUE_SERVER"])
    prepare(goqueue, shell)

    (goqueue.home / "orders.jsonl").touch()
    wanted = {
        "goqueue top": {"top", "topic"},
        "goqueue topic ": {
            "list",
            "create",
            "describe",
            "alter",
            "trim",
            "purge",
            "pause",
            "resume",
            "compact",
            "delete",
        },
        "goqueue -o json topic cr": {"create"},
        "goqueue topic create list --part": {"--partitions"},
        "goqueue topic list -o ": {"table", "json", "yaml", "name"},
        "goqueue consume orders --from-": {"--from-beginning", "--from-latest", "--from-time"},
        "goqueue produce orders --priority h": {"high"},
        "goqueue completion z": {"zsh"},
        "goqueue --context har": {"harbour"},
        "goqueue config use-context ": {"harbour"},
        "goqueue produce orders --file orders.j": {"orders.jsonl"},
        # Names begin like others on this node.
        f"goqueue consume {topic}": {topic},
        f"goqueue group offsets some --topic {topic}": {topic},
        f"goqueue group describe {group}": {group},
        f"goqueue consume {topic} -p 0 --group {group}": {group},
        f"goqueue replay {group} {topic}": {topic},
    }
    offered = dict(zip(wanted, SHELLS[shell](goqueue, list(wanted))))
    for line, candidates in wanted.items():
        found = offered[line] - ALWAYS
        assert (candidates <= found) if topic in candidates or group in candidates else (candidates == found), line


@pytest.mark.parametrize("shell", SHELLS)
def test_a_tab_without_a_node_offers_no_names_and_says_nothing(goqueue: Command, shell: str) -> None:
    goqueue.environment["GOQUEUE_SERVER"] = "http://127.0.0.1:9"
    prepare(goqueue, shell)
    assert SHELLS[shell](goqueue, ["goqueue consume o"]) == [set()]

"""What a person at a terminal sees: follow, colours, questions, progress, and Ctrl-C."""

import os
import re
import subprocess

from tests.integration.goqueue_command import Command
from tests.integration.process import DEADLINE_S, GOQUEUE, Node
from tests.integration.terminal import CTRL_C, terminal

BOLD = "\x1b[1m"


def test_follow_shows_messages_as_they_come_until_ctrl_c(goqueue: Command) -> None:
    goqueue.run("topic", "create", "tty-follow", "-p", "2")
    goqueue.run("produce", "tty-follow", "-m", "before")
    with terminal(goqueue, "consume", "tty-follow", "--follow", "--from-beginning") as shown:
        shown.wait_for("before")
        goqueue.run("produce", "tty-follow", "-m", "first", "-k", "k")
        shown.wait_for("first")
        goqueue.run("produce", "tty-follow", "-m", "second", "-k", "k")
        shown.wait_for("second")
        shown.press(CTRL_C)
        assert shown.end() == 130
    assert "Traceback" not in shown.seen
    values = [line.split()[-1] for line in shown.seen.replace("^C", "").splitlines() if line.strip()]
    assert values == ["VALUE", "before", "first", "second"]


def test_follow_goes_on_after_a_restart(own_node: Node, goqueue: Command) -> None:
    own = Command(goqueue.home, own_node.url)
    own.run("topic", "create", "tty-restart", "-p", "1", "--set", "durability=disk")
    own.run("produce", "tty-restart", "-m", "before")
    with terminal(own, "consume", "tty-restart", "--follow", "--from-beginning", "-o", "value") as shown:
        shown.wait_for("before")
        own_node.kill()
        own_node.start()
        own.run("produce", "tty-restart", "-m", "after")
        shown.wait_for("after")
        shown.press(CTRL_C)
        assert shown.end() == 130
    assert shown.seen.replace("^C", "").split() == ["before", "after"]


def test_a_group_is_followed(goqueue: Command) -> None:
    goqueue.run("topic", "create", "tty-group", "-p", "1")
    with terminal(goqueue, "consume", "tty-group", "--follow", "--group", "tty", "-o", "value") as shown:
        goqueue.run("produce", "tty-group", "-m", "one")
        shown.wait_for("one")
        shown.press(CTRL_C)
        assert shown.end() == 130
    assert "Traceback" not in shown.seen


def test_colours_are_for_a_terminal_that_wants_them(goqueue: Command) -> None:
    goqueue.run("topic", "create", "tty-colours")
    with terminal(goqueue, "topic", "list") as shown:
        assert shown.end() == 0
    assert f"{BOLD}NAME" in shown.seen
    goqueue.environment["NO_COLOR"] = "1"
    with terminal(goqueue, "topic", "list") as shown:
        assert shown.end() == 0
    assert "NAME" in shown.seen
    assert "\x1b" not in shown.seen


def test_what_destroys_asks_first(goqueue: Command) -> None:
    goqueue.run("topic", "create", "tty-delete")
    with terminal(goqueue, "topic", "delete", "tty-delete") as shown:
        shown.wait_for("[y/N]")
        shown.press(b"\n")
        assert shown.end() == 1
    assert "nothing was done" in shown.seen
    with terminal(goqueue, "topic", "delete", "tty-delete") as shown:
        shown.wait_for("[y/N]")
        shown.press(b"y\n")
        assert shown.end() == 0
    goqueue.run("topic", "describe", "tty-delete", code=3)


def test_long_work_tells_how_far_it_is(goqueue: Command) -> None:
    goqueue.run("topic", "create", "tty-progress", "-p", "1")
    (goqueue.home / "many").write_text("\n".join("x" * 1000 for _ in range(20_000)), "utf-8")
    with terminal(goqueue, "produce", "tty-progress", "-f", "many") as shown:
        assert shown.end() == 0
    assert re.search(r"produce: [0-9,]+ of 20,0[0-9,]+ \([0-9]+%\)", shown.seen)
    assert "20,000 messages published" in shown.seen
    piped = goqueue.run("produce", "tty-progress", "-f", "many")
    assert piped.err == ""


def test_lines_are_typed(goqueue: Command) -> None:
    goqueue.run("topic", "create", "tty-typed", "-p", "1")
    with terminal(goqueue, "produce", "tty-typed") as shown:
        shown.press(b"hello\n")
        shown.wait_for("tty-typed/0/0")
        shown.press(b"\x04")
        assert shown.end() == 0
    with terminal(goqueue, "produce", "tty-typed") as shown:
        shown.press(b"bye\n")
        shown.wait_for("tty-typed/0/1")
        shown.press(CTRL_C)
        assert shown.end() == 130
    assert "stopped; 1 message went out, and no more" in shown.seen
    assert "Traceback" not in shown.seen


def test_a_command_is_watched_until_ctrl_c(goqueue: Command) -> None:
    with terminal(goqueue, "topic", "list", "--watch", "--every", "100ms") as shown:
        shown.wait_for("every 0.1s: goqueue topic list")
        goqueue.run("topic", "create", "tty-watched", "-p", "1")
        shown.wait_for("tty-watched")
        shown.press(CTRL_C)
        assert shown.end() == 130
    assert "Traceback" not in shown.seen


def test_top_shows_what_is_busy_now(goqueue: Command) -> None:
    goqueue.run("topic", "create", "tty-busy", "-p", "1")
    with terminal(goqueue, "top", "--every", "1s") as shown:
        shown.wait_for("MSG/S")
        goqueue.run("produce", "tty-busy", "-m", "x")
        shown.wait_for("tty-busy")
        shown.press(CTRL_C)
        assert shown.end() == 130
    assert "Traceback" not in shown.seen


def test_a_redrive_tells_how_far_it_is_and_goes_on_after_ctrl_c(goqueue: Command) -> None:
    goqueue.run("topic", "create", "tty-redrive", "-p", "1")
    goqueue.run("produce", "tty-redrive", stdin="\n".join("abcdefgh"))
    goqueue.run("consume", "tty-redrive", "--group", "tty-redrivers", "-n", "8", "--ack", "reject")
    with terminal(goqueue, "dlq", "redrive", "tty-redrive", "--rate", "1") as shown:
        shown.wait_for(" of 8 (")
        shown.press(CTRL_C)
        assert shown.end() == 130
    assert re.search(r"redrive: [0-8] of 8 \([0-9]+%\)", shown.seen)
    assert "the node goes on with it; goqueue dlq list tty-redrive shows what is left" in shown.seen
    assert "Traceback" not in shown.seen
    said = goqueue.run("dlq", "redrive", "tty-redrive", code=4)
    assert "wait for its end" in said.err


def test_a_measurement_tells_how_far_it_is_until_ctrl_c(goqueue: Command, node: Node) -> None:
    with terminal(goqueue, "bench", "produce", "--kafka", node.address, "--messages", "50000000") as shown:
        shown.wait_for("%)")
        shown.press(CTRL_C)
        assert shown.end() == 130
    assert "Traceback" not in shown.seen


def test_output_that_nobody_reads_ends_a_command_without_a_word(goqueue: Command) -> None:
    goqueue.run("topic", "create", "tty-pipe", "-p", "1")
    goqueue.run("produce", "tty-pipe", "-m", "x")
    (goqueue.home / "lines").write_text("x\n" * 10, "utf-8")
    for words in (
        "--help",
        "topic --help",
        "version",
        "topic list",
        "topic list -o yaml",
        "completion zsh",
        "consume tty-pipe",
        "consume tty-pipe --group tty-pipe -n 1",
        "produce tty-pipe -f lines -o json",
    ):
        reader, writer = os.pipe()
        os.close(reader)
        process = subprocess.run(
            [str(GOQUEUE), *words.split()],
            env=goqueue.environment,
            cwd=goqueue.home,
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=DEADLINE_S,
            check=False,
        )
        os.close(writer)
        assert (words, process.stderr) == (words, b"")
        assert process.returncode == 141 or "--help" in words  # argparse itself passes over it

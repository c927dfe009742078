"""A program makes a client and forks, as servers do that load their application first: the child may not wait for a
thread that only its parent has.
"""

import subprocess
import sys

import pytest

from goqueue.client.sync import Consumer
from tests.integration.conftest import CreateTopic
from tests.integration.process import DEADLINE_S, Node

FORK = """
import os, signal, sys
address, topic = sys.argv[1:]

def in_a_child(work):
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # it ends if it hangs
        try:
            work()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
CLIENT = """
from goqueue.client import Closed
from goqueue.client.sync import Producer
producer, not_started = Producer(address).start(), Producer(address)
producer.send(topic, b"parent")

def work():
    for use in (lambda: producer.send(topic, b"lost"), producer.start):
        try:
            use()
        except Closed as error:
            assert "in each process" in str(error), error
        else:
            raise AssertionError("a child used what its parent has made")
    producer.close()
    with not_started as own:
        own.send(topic, b"child")

in_a_child(work)
producer.send(topic, b"parent again")
producer.close()
"""
CELERY = """
from celery import Celery
import goqueue.integrations.celery
app = Celery("forks", broker=f"goqueue://{address}")

def send(name):
    app.send_task(name, queue=topic)

send("parent")
in_a_child(lambda: send("child"))
send("parent again")
"""
DRAMATIQ = """
import dramatiq
from goqueue.integrations.dramatiq import GoQueueBroker
broker = GoQueueBroker(address, prefix="")

@dramatiq.actor(broker=broker, queue_name=topic)
def note(name):
    pass

note.send("parent")
in_a_child(lambda: note.send("child"))
note.send("parent again")
broker.close()
"""
STARTING = """
import threading
import dramatiq
from goqueue.client import sync
from goqueue.integrations.dramatiq import GoQueueBroker
broker = GoQueueBroker(address, prefix="")
starting, go_on, start = threading.Event(), threading.Event(), sync.Producer.start

def start_late(producer):
    if threading.current_thread() is other:
        starting.set()
        go_on.wait()
    return start(producer)

@dramatiq.actor(broker=broker, queue_name=topic)
def note(name):
    pass

sync.Producer.start = start_late
other = threading.Thread(target=note.send, args=("parent",), daemon=True)
other.start()
starting.wait()
in_a_child(lambda: note.send("child"))
go_on.set()
other.join()
note.send("parent again")
broker.close()
"""
PROGRAMS = {"client": CLIENT, "celery": CELERY, "dramatiq": DRAMATIQ, "while a thread starts": STARTING}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_parent_and_child_both_send(node: Node, make_topic: CreateTopic, program: str) -> None:
    topic = make_topic(1)
    command = [sys.executable, "-c", FORK + program, node.address, topic]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    with Consumer(node.address, topic) as consumer:
        found = [next(consumer) for _ in range(3)]
        assert consumer.poll(timeout="50ms") == []
    if program is CLIENT:
        assert [each.value for each in found] == [b"parent", b"child", b"parent again"]

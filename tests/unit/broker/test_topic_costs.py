"""What a change of one topic costs does not depend on how many others there are."""

from collections.abc import Callable
from typing import Any

import pytest

from goqueue.machines.controller_commands import AddPartitions, CreateTopic, DeleteTopic, SetOptions
from goqueue.model.codes import Code
from tests.brokers import TestBroker
from tests.steps import count_steps

FEW, MANY = 50, 500
MORE_AT_MOST = 1.05
"""A snapshot may fall into one of the two and not into the other."""


def broker_with(topics: int) -> TestBroker:
    node = TestBroker()
    for number in range(topics):
        node.create(f"topic-{number}")
    return node


def create(node: TestBroker, number: int) -> None:
    assert node.create(f"another-{number}", 3).code is Code.NONE


def configure(node: TestBroker, number: int) -> None:
    submit = node.broker.topics.submit
    assert node.ask(submit, SetOptions(f"topic-{number}", {"retention.ms": "1000"})).code is Code.NONE


def add_partitions(node: TestBroker, number: int) -> None:
    assert node.ask(node.broker.topics.submit, AddPartitions(f"topic-{number}", 3)).code is Code.NONE


def delete(node: TestBroker, number: int) -> None:
    assert node.ask(node.broker.topics.submit, DeleteTopic(f"topic-{number}")).code is Code.NONE


def lines_of(change: Callable[[TestBroker, int], None], topics: int) -> int:
    node = broker_with(topics)
    change(node, 0)

    def ten() -> None:
        for number in range(1, 11):
            change(node, number)

    return count_steps(ten)


@pytest.mark.parametrize("change", [create, configure, add_partitions, delete], ids=lambda change: change.__name__)
def test_a_topic_costs_the_same_among_few_and_among_many(change: Callable[[TestBroker, int], None]) -> None:
    assert lines_of(change, MANY) <= MORE_AT_MOST * lines_of(change, FEW)


def at_once(node: TestBroker, names: list[str]) -> None:
    """As one request asks for them: none waits for the answer to another."""
    replies: list[Any] = []
    for name in names:
        command = CreateTopic(name, name.encode().ljust(16, b".")[:16], 1)
        node.broker.topics.submit(command, replies.append)
    node.commit()
    assert [reply.code for reply in replies] == [Code.NONE] * len(names)


def test_topics_that_are_made_at_once_do_not_cost_each_other() -> None:
    few, many = ([f"topic-{number}" for number in range(count)] for count in (20, 200))
    assert count_steps(lambda: at_once(TestBroker(), many)) < 11 * count_steps(lambda: at_once(TestBroker(), few))

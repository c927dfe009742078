"""Dead letters that go back to partitions of other nodes: each is there once, also when an answer was lost."""

from collections import Counter
from typing import Any

import pytest

from goqueue.broker.dead_letters.redrive import DeadLetters
from goqueue.records.decode import decode
from goqueue.records.redrives import RedriveReport, RedriveRequest
from goqueue.testing.simulation import Simulation
from tests.sim.test_cluster_doors import PARTITIONS, Caller, publish, receive_all, run

MESSAGES = 24
TARGET, TARGETS = "again", PARTITIONS - 1
"""Keys are spread over it otherwise than over the topic."""


async def die(sim: Simulation, nodes: list[Caller]) -> None:
    await nodes[0]("create_topic", name=TARGET, num_partitions=TARGETS)
    await publish(nodes[0], MESSAGES)
    for each in await receive_all(nodes[0]):
        await nodes[1]("reject", receipt_handle=each["receipt_handle"], reason="bad")
    await sim.let_pass("5s")


def leaders(sim: Simulation, topic: str) -> list[int]:
    return [each.leader for each in sim.nodes[0].broker.topics.image.topics[topic].placements]


def begin(letters: DeadLetters) -> list[Any]:
    done: list[Any] = []
    letters.redrive(RedriveRequest("orders", to=TARGET), done.append)
    return done


async def send_all_back(sim: Simulation, *, is_idempotent: bool) -> Counter[str]:
    """With an answer that is lost meanwhile. How often each value was sent back."""
    sender = leaders(sim, "orders.dlq")[0]
    by_id = {each.broker.identity.node_id: each for each in sim.nodes}
    for each in sim.nodes:
        if not is_idempotent:
            letters, plain = each.broker.dead_letters, each.broker.sender.send
            letters.way_back = lambda plain=plain: plain  # type: ignore[misc]
    for each in sim.nodes:
        sim.network.cut(each.name, by_id[sender].name, both_ways=False)
    first = begin(by_id[sender].broker.dead_letters)
    await sim.let_pass("1s")
    sim.network.reset(by_id[sender].name)
    sim.network.heal()
    await sim.let_pass("60s")
    assert isinstance(first[0], RedriveReport), first
    for each in sim.nodes:
        begin(each.broker.dead_letters)
    await sim.let_pass("30s")
    counts: Counter[str] = Counter()
    for node in sim.nodes:
        topics = node.broker.topics
        for number in topics.led(TARGET, range(TARGETS)):
            for batch in topics.replica(TARGET, number).batches_from(0):
                counts.update((record.value or b"").decode() for record in decode(batch))
    return counts


@pytest.mark.parametrize("seed", range(1, 3))
def test_letters_go_back_once_though_an_answer_was_lost(seed: int) -> None:
    async def scenario(sim: Simulation, nodes: list[Caller]) -> None:
        await die(sim, nodes)
        counts = await send_all_back(sim, is_idempotent=True)
        assert counts == {f"m{number}": 1 for number in range(MESSAGES)}

    run(scenario, seed)


def test_by_plain_messages_some_would_be_there_twice() -> None:
    async def scenario(sim: Simulation, nodes: list[Caller]) -> None:
        await die(sim, nodes)
        counts = await send_all_back(sim, is_idempotent=False)
        assert len(counts) == MESSAGES
        assert max(counts.values()) > 1

    run(scenario)

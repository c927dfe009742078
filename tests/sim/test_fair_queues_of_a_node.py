"""One noisy and 99 quiet senders on one queue of a whole node, over SQS: how long messages of the quiet ones wait until
a worker has them, in virtual time.
"""

import asyncio
from typing import Any

import pytest

from goqueue.machines.controller_commands import CreateTopic
from goqueue.model.codes import Code
from goqueue.testing import Simulation
from goqueue.testing.virtual_loop import let_pass
from goqueue.testing.virtual_network import Weather
from tests.sim.test_sqs_in_trouble import Sqs

pytestmark = pytest.mark.second_layer
QUIET = 99
WORKERS = 4
WORK_S = 0.01
LOAD = 0.5
"""Of what the workers can do, by the quiet ones alone. The closer to all of it, the longer: by 0.7 it is 2.1 times, by
0.8 2.4 times, since every worker that nobody else wants has a message of the noisy one when the next one comes."""
MESSAGES = 300
BACKLOG = 400
NOISY = "noisy"
CALM = Weather((0.05, 0.05), 0.0, (1.0, 1.0), 0.0)
URL = {"QueueUrl": "http://node-1/0/orders"}


def waits_of_the_quiet(backlog: int, fair_by: str) -> list[float]:
    """Seconds between the sending of each of their messages and its delivery."""
    waits: list[float] = []

    async def scenario(sim: Simulation) -> None:
        (node,), dice, made = sim.nodes, sim.dice("arrivals"), sim.loop.create_future()
        sim.network.weather, node.sync_ms = CALM, (0.1, 0.1)
        topics, me = node.broker.topics, sim.process("me")
        create = CreateTopic("orders", topics.new_id(), 1, {"fair.by": fair_by})
        topics.submit(create, made.set_result)
        assert (await made).code is Code.NONE
        sqs = Sqs(me, node.name)
        for _ in range(backlog // 10):
            batch = [{"Id": str(each), "MessageBody": NOISY, "MessageGroupId": NOISY} for each in range(10)]
            sent = await sqs.ask("SendMessageBatch", **URL, Entries=batch)
            assert len(sent["Successful"]) == 10

        async def work() -> None:
            own = Sqs(me, node.name)
            while len(waits) < MESSAGES:
                got: dict[str, Any] = await own.ask("ReceiveMessage", **URL, WaitTimeSeconds=1)
                for message in got.get("Messages", []):
                    if message["Body"] != NOISY:
                        waits.append(sim.loop.time() - float(message["Body"]))
                    await let_pass(WORK_S)
                    await own.ask("DeleteMessage", **URL, ReceiptHandle=message["ReceiptHandle"])

        workers = [me.spawn(work()) for _ in range(WORKERS)]
        senders = []
        for _ in range(MESSAGES):
            await let_pass(dice.expovariate(LOAD * WORKERS / WORK_S))
            group, now = f"quiet-{dice.randrange(QUIET)}", repr(sim.loop.time())
            senders.append(me.spawn(sqs.ask("SendMessage", **URL, MessageBody=now, MessageGroupId=group)))
        await asyncio.gather(*senders, *workers)
        assert not sim.loop.exceptions

    Simulation(1).run(scenario)
    assert len(waits) >= MESSAGES
    return sorted(waits)


def p99(waits: list[float]) -> float:
    return waits[len(waits) * 99 // 100]


def test_the_quiet_wait_at_most_twice_as_long_as_they_would_alone() -> None:
    together, by_themselves = p99(waits_of_the_quiet(BACKLOG, "key")), p99(waits_of_the_quiet(0, "key"))
    assert together <= 2 * by_themselves, (together, by_themselves)


def test_without_fairness_they_wait_for_the_backlog() -> None:
    assert p99(waits_of_the_quiet(BACKLOG, "none")) > 20 * p99(waits_of_the_quiet(0, "none"))

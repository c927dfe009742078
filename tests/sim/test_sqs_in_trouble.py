"""The SQS interface over a network that loses answers, and a node that loses its power."""

import json
from typing import Any

from goqueue.client.exchange import Ask, ExchangeFailed, PlainExchange
from goqueue.client.loop_streams import LoopStreams
from goqueue.testing import Process, Simulation
from goqueue.testing.virtual_loop import let_pass

BODIES = {f"order {number}" for number in range(15)}


class Sqs:
    """Asks until there is an answer, as AWS's SDKs do."""

    def __init__(self, me: Process, host: str) -> None:
        self._exchange = PlainExchange(host, 8080, 2.0, LoopStreams(me.ports["network"]))

    async def ask(self, action: str, **body: Any) -> Any:
        headers = {"x-amz-target": f"AmazonSQS.{action}", "content-type": "application/x-amz-json-1.0"}
        while True:
            try:
                answer = await self._exchange.ask(Ask("POST", "/", headers, json.dumps(body).encode(), 2.0))
            except ExchangeFailed:
                await let_pass(0.2)
                continue
            if answer.status == 200:
                return json.loads(answer.body) if answer.body else {}
            assert answer.status == 503, answer.body
            await let_pass(0.2)


def test_every_message_that_was_sent_is_received_and_deleted_through_cuts_resets_and_lost_power() -> None:
    done: set[str] = set()

    async def scenario(sim: Simulation) -> None:
        (node,) = sim.nodes
        me = sim.process("me")
        sqs = Sqs(me, node.name)

        async def send() -> None:
            url = (await sqs.ask("CreateQueue", QueueName="orders", Attributes={"VisibilityTimeout": "5"}))["QueueUrl"]
            for body in sorted(BODIES):
                await sqs.ask("SendMessage", QueueUrl=url, MessageBody=body)
            while len(done) < len(BODIES):
                got = await sqs.ask("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=3, WaitTimeSeconds=1)
                for message in got.get("Messages", []):
                    await sqs.ask("DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                    done.add(message["Body"])
            got = await sqs.ask("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=1)
            while messages := got.get("Messages"):  # sent twice, because the first answer was lost
                assert {message["Body"] for message in messages} <= BODIES
                await sqs.ask("DeleteMessage", QueueUrl=url, ReceiptHandle=messages[0]["ReceiptHandle"])
                got = await sqs.ask("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=1)

        sending = me.spawn(send())
        for round_ in range(6):
            await let_pass(0.05)
            sim.network.cut(node.name, "me", both_ways=False)
            await let_pass(0.5)
            sim.network.heal()
            sim.network.reset("me")
            if round_ % 2:
                node.crash("power")
                await node.start()
        await sending

    for seed in (1, 2):
        done.clear()
        Simulation(seed).run(scenario)
        assert done == BODIES

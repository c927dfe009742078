"""SQS on three nodes: a queue is one queue, whichever of them is asked."""

import json
from typing import Any

from goqueue.client.exchange import Ask, PlainExchange
from goqueue.client.loop_streams import LoopStreams
from goqueue.testing.simulated_node import HTTP_PORT
from goqueue.testing.simulation import Simulation


class Sqs:
    def __init__(self, sim: Simulation, number: int) -> None:
        host = sim.nodes[number].name
        self._exchange = PlainExchange(host, HTTP_PORT, 5.0, LoopStreams(sim.network.at("me")))

    async def __call__(self, action: str, /, **given: Any) -> Any:
        headers = {"x-amz-target": f"AmazonSQS.{action}", "content-type": "application/x-amz-json-1.0"}
        answer = await self._exchange.ask(Ask("POST", "/", headers, json.dumps(given).encode(), 30.0))
        body = json.loads(answer.body)
        assert answer.status == 200, body
        return body

    async def close(self) -> None:
        await self._exchange.close()


def test_a_queue_is_one_queue_whichever_node_is_asked() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        nodes = [Sqs(sim, number) for number in range(3)]
        url = (await nodes[0]("CreateQueue", QueueName="jobs"))["QueueUrl"]
        await sim.let_pass("1s")
        for number in range(12):
            await nodes[number % 3]("SendMessage", QueueUrl=url, MessageBody=f"m{number}")
        for node in nodes:
            told = await node("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])
            assert told["Attributes"]["ApproximateNumberOfMessages"] == "12"
            assert len((await node("ListQueues"))["QueueUrls"]) == 1
        bodies: list[str] = []
        for number in range(40):
            node = nodes[number % 3]
            answer = await node("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
            for message in answer.get("Messages", ()):
                bodies.append(message["Body"])
                await nodes[(number + 1) % 3]("DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            if len(bodies) == 12:
                break
        assert sorted(bodies) == sorted(f"m{number}" for number in range(12))
        await nodes[0]("SendMessage", QueueUrl=url, MessageBody="left")
        await nodes[2]("PurgeQueue", QueueUrl=url)
        assert (await nodes[1]("ReceiveMessage", QueueUrl=url)).get("Messages", []) == []
        for node in nodes:
            await node.close()
        assert not sim.loop.exceptions

    Simulation(seed=6, nodes=3, cluster=True, default_replication_factor=1).run(scenario, limit="5m")

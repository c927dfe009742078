"""Queues by three interfaces: publishers, and workers that acknowledge most, and give back, reject or forget some."""

import asyncio
from random import Random
from typing import Any

from goqueue.client import ClientError, Job, Worker
from goqueue.client.errors import LeaseLost
from goqueue.model.errors import GoQueueError
from goqueue.testing.simulation import Process
from goqueue.testing.virtual_loop import let_pass
from tests.sim.storms.stage import QUIET_S_MAX, REQUEST, Http, NotDone, Stage, Unanswered, Work

LEASE_S = 4
WORKERS = 2
QUIET_S = 2 * LEASE_S + 3
"""Nothing came for so long: all leases are over, and nothing is left."""
FORGOTTEN, GIVEN_BACK, REJECTED = 0.04, 0.1, 0.14
"""What a worker does when its dice are below; else it acknowledges."""
PARTITIONS = 2


class HttpQueue:
    name = "queue"
    door = "http"
    queue = "storm-queue"
    dlq = "storm-graves"
    forgives_late = False
    """Whether it says yes to a settlement when the lease is over, as SQS does, though nothing was settled by it."""

    async def prepare(self, stage: Stage) -> None:
        await stage.make_topic(self.dlq, 1)
        lease_ms = LEASE_S * 1000
        await stage.make_topic(self.queue, PARTITIONS, attempts_max=0, dead_letter_topic=self.dlq, lease_ms=lease_ms)

    def works(self, stage: Stage) -> dict[str, Work]:
        found: dict[str, Work] = {f"{self.door}-publisher": lambda me: self._publish(stage, me)}
        for number in range(WORKERS):
            found[f"{self.door}-worker-{number}"] = lambda me, number=number: self._work(stage, me, number)  # type: ignore[misc]
        return found

    async def _publish(self, stage: Stage, me: Process) -> None:
        number = 0
        async with Http(stage, me) as http:
            while not stage.is_ending:
                number += 1
                asking = stage.book.begin(me.name, "publish", queue=self.queue, id=f"{number}", door=self.door)
                try:
                    await self._send(http, f"{number}")
                except NotDone as error:
                    asking.fail(error)
                except Unanswered as error:
                    asking.unknown(error)
                else:
                    asking.ok()
                await let_pass(me.dice.uniform(0.05, 0.4))

    async def _work(self, stage: Stage, me: Process, number: int) -> None:
        last_s = stage.sim.loop.time()
        async with Http(stage, me, number) as http:
            while not (stage.is_ending and stage.sim.loop.time() - last_s > QUIET_S):
                asking = stage.book.begin(me.name, "receive", queue=self.queue, door=self.door)
                until_s = stage.sim.loop.time() + LEASE_S
                try:
                    messages = await self._receive(http)
                except NotDone as error:
                    asking.fail(error)
                    await let_pass(0.2)
                    continue
                except Unanswered as error:
                    asking.unknown(error)
                    last_s = stage.sim.loop.time()  # it may have leased something
                    await let_pass(0.2)
                    continue
                asking.ok(messages=[{"id": one[0], "receipt": one[1], "lease_ms": LEASE_S * 1000} for one in messages])
                for message_id, receipt in messages:
                    last_s = stage.sim.loop.time()
                    await self._settle_one(stage, me, http, message_id, receipt, until_s)

    async def _settle_one(
        self, stage: Stage, me: Process, http: Http, message_id: str, receipt: str, until_s: float
    ) -> None:
        how = choice(stage, me.dice)
        if how is None:
            return
        about = {"queue": self.queue, "id": message_id, "receipt": receipt, "how": how}
        asking = stage.book.begin(me.name, "settle", **about, door=self.door)
        try:
            await self._settle(http, receipt, how)
        except NotDone as error:
            asking.fail(error)
        except Unanswered as error:
            asking.unknown(error)
        else:
            if self.forgives_late and (stage.sim.loop.time() > until_s or stage.is_troubled):
                asking.unknown("its lease may be over, and somebody else have it")
            else:
                asking.ok()

    async def finish(self, stage: Stage) -> None:
        """What was rejected is in the dead-letter topic, and nothing that was acknowledged is. It may be there twice:
        dead letters are written before their messages are settled.
        """
        letters = {value for _, value in (await stage.read_all(self.dlq, 1))[0]}
        settled = [one for one in stage.history() if one.what == "settle" and one.asked["queue"] == self.queue]
        rejected = {one.asked["id"] for one in settled if one.asked["how"] == "reject" and one.is_ok}
        may_be = {one.asked["id"] for one in settled if one.asked["how"] == "reject"}
        assert not rejected - letters, f"rejected, and no dead letters: {sorted(rejected - letters)}"
        assert not letters - may_be, f"dead letters that nobody rejected: {sorted(letters - may_be)}"

    # -- the interface

    async def _send(self, http: Http, message_id: str) -> None:
        told = await http.ask("POST", f"/topics/{self.queue}/messages", {"messages": [{"value": message_id}]})
        error = told["results"][0].get("error")
        if error:
            raise Unanswered(error)

    async def _receive(self, http: Http) -> list[tuple[str, str]]:
        body = {"group": "crew", "max_messages": 5, "wait": "1s", "lease": f"{LEASE_S}s"}
        told = await http.ask("POST", f"/topics/{self.queue}/receive", body)
        return [(each["value"], each["receipt_handle"]) for each in told["messages"]]

    async def _settle(self, http: Http, receipt: str, how: str) -> None:
        body = {"receipt_handle": receipt} | ({"delay": "200ms"} if how == "nack" else {})
        await http.ask("POST", f"/messages/{how}", body)


class SqsQueue(HttpQueue):
    name = "sqs"
    door = "sqs"
    queue = "storm-sqs"
    forgives_late = True

    def __init__(self) -> None:
        self._url = ""

    async def prepare(self, stage: Stage) -> None:
        me = stage.process("operator")
        async with Http(stage, me) as http:
            self._url = (await http.sqs("CreateQueue", QueueName=self.queue))["QueueUrl"]

    async def finish(self, stage: Stage) -> None:
        """SQS knows no rejection."""

    async def _send(self, http: Http, message_id: str) -> None:
        await http.sqs("SendMessage", QueueUrl=self._url, MessageBody=message_id)

    async def _receive(self, http: Http) -> list[tuple[str, str]]:
        asked = {"MaxNumberOfMessages": 5, "WaitTimeSeconds": 1, "VisibilityTimeout": LEASE_S}
        told = await http.sqs("ReceiveMessage", QueueUrl=self._url, **asked)
        return [(each["Body"], each["ReceiptHandle"]) for each in told.get("Messages", ())]

    async def _settle(self, http: Http, receipt: str, how: str) -> None:
        if how == "nack":
            await http.sqs("ChangeMessageVisibility", QueueUrl=self._url, ReceiptHandle=receipt, VisibilityTimeout=0)
        else:
            await http.sqs("DeleteMessage", QueueUrl=self._url, ReceiptHandle=receipt)


class WorkerQueue(HttpQueue):
    """Published over HTTP, worked on by `goqueue.client.Worker`, over Kafka's share groups. A worker that takes the
    next job frees the room for it when it settles the last one: the next may be leased from then on.
    """

    name = "workers"
    door = "share"
    queue = "storm-jobs"
    dlq = "storm-jobs-graves"

    async def _work(self, stage: Stage, me: Process, number: int) -> None:
        last_s, turns = stage.sim.loop.time(), 0

        async def life() -> None:
            nonlocal last_s, turns
            async with Worker(
                stage.servers, self.queue, group="crew", concurrency=1, prefetch=0, request_timeout=REQUEST, **me.ports
            ) as worker:
                asking = stage.book.begin(me.name, "receive", queue=self.queue, door=self.door)
                while not (stage.is_ending and stage.sim.loop.time() - last_s > QUIET_S):
                    job = await worker_next(worker)
                    if job is None:
                        continue
                    last_s, turns = stage.sim.loop.time(), turns + 1
                    message_id, receipt = (job.value or b"").decode(), f"{me.name}/{turns}"
                    asking.ok(messages=[{"id": message_id, "receipt": receipt, "lease_ms": 0}])
                    asking = stage.book.begin(me.name, "receive", queue=self.queue, door=self.door)
                    await self._settle_job(stage, me, job, message_id, receipt)

        give_up_s = None
        while not (stage.is_ending and stage.sim.loop.time() - last_s > QUIET_S):
            if stage.is_ending and give_up_s is None:
                give_up_s = stage.sim.loop.time() + QUIET_S_MAX
            assert give_up_s is None or stage.sim.loop.time() < give_up_s, f"{me.name} does not come to an end"
            try:
                await life()
            except (ClientError, GoQueueError, OSError):
                last_s = stage.sim.loop.time()
                await let_pass(0.3)

    async def _settle_job(self, stage: Stage, me: Process, job: Job, message_id: str, receipt: str) -> None:
        how = choice(stage, me.dice) or "nack"  # a worker keeps its leases alive: it cannot forget
        about = {"queue": self.queue, "id": message_id, "receipt": receipt, "how": how}
        asking = stage.book.begin(me.name, "settle", **about, door=self.door)
        try:
            if how == "nack":
                await job.nack("200ms")
            else:
                await (job.reject("no") if how == "reject" else job.ack())
        except LeaseLost as error:
            asking.unknown(error)  # an attempt before the last may have been heard
        except (ClientError, GoQueueError, OSError) as error:
            asking.unknown(error)
            raise
        else:
            asking.ok()


async def worker_next(worker: Worker) -> Job | None:
    """None: nothing came for a while."""
    try:
        return await asyncio.wait_for(worker.next(), 1.0)
    except TimeoutError:
        return None


def choice(stage: Stage, dice: Random) -> Any:
    """None: forget it, and it comes again when its lease is over."""
    chance = 1.0 if stage.is_ending else dice.random()
    if chance < FORGOTTEN:
        return None
    return "nack" if chance < GIVEN_BACK else "reject" if chance < REJECTED else "ack"

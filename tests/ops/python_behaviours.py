"""Does the steps of sdk/behaviours.json with the Python client and prints what came of each, as the Go program does:
`python -m tests.ops.python_behaviours LIST KAFKA HTTP`.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from goqueue.client import Admin, Consumer, Job, Producer, Reject, RetryLater, Worker
from goqueue.client.errors import ClientError, Fenced
from goqueue.client.http import HttpRefused
from goqueue.model.errors import GoQueueError

STEP_S_MAX = 120.0
KINDS = {404: "not found", 409: "exists", 400: "invalid", 401: "denied", 403: "denied"}
Step = dict[str, Any]


def say(what: Any) -> None:
    print(json.dumps(what), flush=True)


async def node(what: str) -> None:
    """Asks for the node to be killed or started."""
    say({"node": what})
    await asyncio.to_thread(sys.stdin.readline)


def kind(error: Exception) -> str:
    if isinstance(error, Fenced):
        return "fenced"
    return KINDS.get(error.status, str(error)) if isinstance(error, HttpRefused) else str(error)


def message_of(step: Step) -> dict[str, Any]:
    given: dict[str, Any] = {"value": step["value"].encode()}
    headers = {name: value.encode() for name, value in step.get("headers", {}).items()}
    if "dedup_id" in step:
        headers["gq-dedup-id"] = step["dedup_id"].encode()
    if "key" in step:
        given["key"] = step["key"].encode()
    if "delay_ms" in step:
        given["delay"] = step["delay_ms"]
    if "priority" in step:
        given["priority"] = step["priority"]
    return given | {"headers": headers}


class Steps:
    """Of one behaviour."""

    def __init__(self, kafka: str, http: str, stack: AsyncExitStack) -> None:
        self._kafka = kafka
        self._stack = stack
        self._admin = Admin(http)
        self._http = http
        self._producers: dict[str, Producer] = {}
        self._open: dict[str, tuple[Producer, Any]] = {}
        self._workers: dict[str, tuple[Worker, asyncio.Task[None], list[tuple[str, int]]]] = {}
        self._readers: dict[str, Consumer] = {}
        self._background: dict[str, asyncio.Task[Any]] = {}
        self._begun: Counter[str] = Counter()
        self._more = asyncio.Condition()

    async def start(self) -> "Steps":
        await self._stack.enter_async_context(self._admin)
        return self

    async def _producer(self, name: str = "") -> Producer:
        if name not in self._producers:
            made = Producer(self._kafka, transactional_id=name or None)
            self._producers[name] = await self._stack.enter_async_context(made)
        return self._producers[name]

    async def do(self, step: Step) -> Any:
        return await getattr(self, "_begun_by" if step["do"] == "begun" else f"_{step['do']}")(step)

    # -- the node, topics

    async def _kill(self, _step: Step) -> None:
        await node("kill")

    async def _start(self, _step: Step) -> None:
        await node("start")

    async def _new_client(self, _step: Step) -> None:
        self._producers.clear()

    async def _create_topic(self, step: Step) -> None:
        options = {name.replace(".", "_"): value for name, value in step.get("options", {}).items()}
        await self._admin.create_topic(step["topic"], partitions=step.get("partitions"), **options)

    async def _delete_topic(self, step: Step) -> None:
        await self._admin.delete_topic(step["topic"])

    async def _set_options(self, step: Step) -> None:
        options = {name.replace(".", "_"): value for name, value in step["options"].items()}
        await self._admin.set_options(step["topic"], **options)

    async def _describe(self, step: Step) -> Any:
        topic = await self._admin.topic(step["topic"])
        return {"partitions": topic.partitions, "options": topic.options}

    async def _why(self, step: Step) -> str:
        where = await self._admin.why(step["topic"], step["partition"], step["offset"])
        return next((each.state for each in where.groups if each.group == step.get("group")), where.state)

    # -- publishing

    async def _publish(self, step: Step) -> Any:
        producer = self._open[step["in"]][0] if "in" in step else await self._producer()
        given = message_of(step)
        sending = producer.send(step["topic"], given.pop("value"), **given)
        if "background" in step:
            self._background[step["background"]] = asyncio.ensure_future(sending)
            return None
        receipt = await sending
        return {"partition": receipt.partition, "offset": receipt.offset}

    async def _join(self, step: Step) -> None:
        await self._background[step["background"]]

    async def _produce(self, step: Step) -> int:
        producer, posted = await self._producer(), []
        for number in range(step["count"]):
            if number == step["restart_after"]:
                await node("kill")
                await node("start")
            posted.append(await producer.post(step["topic"], b"%d" % number))
        await producer.flush()
        return len(await asyncio.gather(*posted))

    async def _begin(self, step: Step) -> None:
        producer = await self._producer(step["name"])
        transaction = producer.transaction()
        await transaction.__aenter__()
        self._open[step["transaction"]] = producer, transaction

    async def _commit(self, step: Step) -> None:
        await self._open[step["transaction"]][1].__aexit__(None, None, None)

    async def _abort(self, step: Step) -> None:
        cause = RuntimeError("as the behaviour says")
        await self._open[step["transaction"]][1].__aexit__(type(cause), cause, None)

    # -- reading

    async def _messages(self, topic: str) -> list[Any]:
        """Of the only partition, as it is now."""
        found: list[Any] = []
        offset = 0
        while True:
            page = await self._admin.read(topic, 0, offset=offset, limit=1000)
            found += page.messages
            if not page.messages:
                return found
            offset = page.next_offset

    async def _read(self, step: Step) -> Any:
        return [
            {
                "key": each.key,
                "value": each.value,
                "headers": {name: value for name, value in each.headers.items() if not name.startswith("gq-")},
                "priority": each.priority,
            }
            for each in await self._messages(step["topic"])
        ]

    async def _values(self, step: Step) -> Any:
        async def enough() -> list[str]:
            while True:
                try:
                    found = [each.value for each in await self._messages(step["topic"])]
                except HttpRefused:
                    found = []
                if len(found) >= step.get("wait_for", 0):
                    return found

        found = await enough()
        return {"messages": len(found), "different": len(set(found))} if step.get("count") else found

    async def _follow(self, step: Step) -> None:
        consumer = Consumer(self._kafka, step["topic"])
        self._readers[step["reader"]] = await self._stack.enter_async_context(consumer)

    async def _take(self, step: Step) -> Any:
        found: list[Any] = []
        while len(found) < step["count"]:
            polled = await self._readers[step["reader"]].poll(max_messages=step["count"] - len(found))
            found += [[(each.value or b"").decode(), each.offset] for each in polled]
        return found

    async def _end_follow(self, step: Step) -> None:
        await self._readers[step["reader"]].close()

    # -- working

    async def _start_worker(self, step: Step) -> None:
        options = {"lease": step["lease_ms"]} if "lease_ms" in step else {}
        worker = Worker(self._kafka, step["topic"], group=step["group"], concurrency=4, **options)
        jobs: list[tuple[str, int]] = []

        @worker.handle
        async def handle(job: Job) -> None:
            async with self._more:
                self._begun[step["worker"]] += 1
                self._more.notify_all()
            if "takes_ms" in step:
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.Event().wait(), step["takes_ms"] / 1000)
            value = (job.value or b"").decode()
            async with self._more:
                jobs.append((value, job.attempt))
                self._more.notify_all()
            outcomes = step.get("outcomes", {}).get(value, [])
            if job.attempt <= len(outcomes):
                raise (Reject("as it says") if outcomes[job.attempt - 1] == "reject" else RetryLater(delay=0))

        self._workers[step["worker"]] = worker, asyncio.ensure_future(worker.run()), jobs

    async def _stop_worker(self, step: Step) -> None:
        worker, running, _ = self._workers[step["worker"]]
        worker.stop()
        await running

    async def _until(self, is_enough: Callable[[], bool]) -> None:
        async with self._more:
            await self._more.wait_for(is_enough)

    async def _begun_by(self, step: Step) -> None:
        await self._until(lambda: self._begun[step["worker"]] >= step["count"])

    async def _jobs(self, step: Step) -> Any:
        jobs = self._workers[step["worker"]][2]
        await self._until(lambda: len(jobs) >= step["count"])
        return [list(each) for each in sorted(jobs)]

    async def _different_jobs(self, step: Step) -> Any:
        jobs = self._workers[step["worker"]][2]
        await self._until(lambda: len({value for value, _ in jobs}) >= step["count"])
        return sorted({value for value, _ in jobs})

    async def _either_jobs(self, step: Step) -> None:
        await self._until(lambda: sum(len(self._workers[name][2]) for name in step["workers"]) >= step["count"])

    async def _attempts(self, step: Step) -> Any:
        return [list(each) for each in sorted(job for name in step["workers"] for job in self._workers[name][2])]


async def behave(behaviour: dict[str, Any], kafka: str, http: str) -> dict[str, Any]:
    got: dict[str, Any] = {}
    said: dict[str, Any] = {"name": behaviour["name"], "got": got}
    async with AsyncExitStack() as stack:
        steps = await Steps(kafka, http, stack).start()
        for number, step in enumerate(behaviour["steps"], 1):
            try:
                result = await asyncio.wait_for(steps.do(step), STEP_S_MAX)
            except (GoQueueError, ClientError) as error:
                if "as" not in step:
                    return said | {"failed": f"step {number}, {step['do']}: {error}"}
                result = {"error": kind(error)}
            if "as" in step:
                got[step["as"]] = result
    return said


async def main(behaviours: list[dict[str, Any]], kafka: str, http: str) -> None:
    for behaviour in behaviours:
        say(await behave(behaviour, kafka, http))


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text("utf-8")), *sys.argv[2:]))

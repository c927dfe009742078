"""One worker of a fleet: it packs parcels from the topic `parcels`. Start as many as you like, on as many machines.

    python examples/workers/worker.py --name w1

A worker may be killed at any time. What it held is delivered to another one when its lease ends. A parcel without an
address can never be packed, so it becomes a dead letter at once: look at it in the console, and redrive it.
"""

import argparse
import asyncio
import json
from typing import Any

from goqueue.client import Job, Reject, Worker


def read(value: bytes | None) -> dict[str, Any]:
    try:
        parcel: dict[str, Any] = json.loads(value or b"")
    except ValueError as error:
        raise Reject(f"this is no JSON: {error}") from error
    if not parcel.get("address"):
        raise Reject("there is no address on it")
    return parcel


def packer(servers: str, name: str, speed: float = 1) -> Worker:
    worker = Worker(servers, "parcels", group="packers", concurrency=5, client_id=name)

    @worker.handle
    async def pack(job: Job) -> None:
        parcel = read(job.value)
        print(f"{name} packs {parcel['address']}", flush=True)
        await asyncio.sleep(parcel.get("seconds", 0) / speed)  # stands for the work
        print(f"{name} packed {parcel['address']}", flush=True)

    return worker


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--servers", default="127.0.0.1:9092", help="Kafka API of the node (default %(default)s)")
    arguments.add_argument("--name", default="worker", help="how the console shows it")
    arguments.add_argument("--speed", type=float, default=1, help="a parcel says how many seconds it takes")
    given = arguments.parse_args()
    asyncio.run(packer(given.servers, given.name, given.speed).run())

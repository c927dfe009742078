"""Run by the Python of an empty environment: producer, consumer, worker and admin, by what the bare wheel brings.

`python bare_client.py KAFKA HTTP` prints what it saw, as JSON.
"""

import asyncio
import json
import sys

from goqueue.client import Admin, Consumer, Job, Producer, Worker, sync
from goqueue.client.options import Compression

CODECS: tuple[Compression, ...] = ("none", "gzip", "snappy", "lz4", "zstd")


def shown(value: bytes | None) -> str:
    return (value or b"")[:4].decode()


async def main(kafka: str, http: str) -> None:
    seen: dict[str, object] = {}
    async with Admin(http) as admin:
        await admin.create_topic("bare", partitions=2)
        for codec in CODECS:
            async with Producer(kafka, compression=codec) as producer:
                await producer.send("bare", codec.encode() * 100, key=b"k", ttl="1h")
        async with Consumer(kafka, "bare", group="readers", start="earliest") as consumer:
            seen["read"] = [shown((await anext(consumer)).value) for _ in CODECS]
        worker = Worker(kafka, "bare", group="workers")
        done: list[str] = []

        @worker.handle
        async def handle(job: Job) -> None:
            done.append(shown(job.value))
            if len(done) == len(CODECS):
                worker.stop()

        await worker.run()
        seen["worked"] = sorted(done)
        seen["topics"] = await admin.topics()
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
with sync.Producer(sys.argv[1]) as threaded:
    threaded.send("bare", b"from a thread")

"""The two ends of the example: a shop that takes orders, and packers who handle what has become of them."""

import asyncio
import json
import logging
import random

import structlog

from goqueue.client import Admin, Job, Producer, Reject, Worker

TOPICS = ("customers", "orders", "enriched")
CITIES = ("Lisbon", "Oslo", "Prague", "Turin")


async def open_shop(server: str) -> None:
    async with Admin(server) as admin:
        for topic in TOPICS:
            await admin.create_topic(topic, partitions=2)


async def take_orders(kafka: str, orders: int, customers: int = 50) -> None:
    dice = random.Random(7)
    async with Producer(kafka) as producer:
        known = [
            {"id": f"c{number}", "name": f"Customer {number}", "city": dice.choice(CITIES)}
            for number in range(customers)
        ]
        await producer.send_many("customers", [message(each["id"], each) for each in known])
        placed = []
        for number in range(orders):
            # Some orders are from nobody that we know.
            customer = f"c{dice.randrange(customers + 2)}"
            placed.append(
                message(customer, {"id": number, "customer": customer, "amount": round(dice.expovariate(0.02), 2)})
            )
        await producer.send_many("orders", placed)


def message(key: str, value: dict) -> dict:
    return {"key": key.encode(), "value": json.dumps(value).encode()}


async def pack(kafka: str, orders: int) -> dict[str, int]:
    """Until every order is packed, or given up because its customer is not known."""
    # The client says in its log which jobs fail; here that is part of the story.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    counts = {"packed": 0, "rejected": 0, "tried again": 0}
    worker = Worker(kafka, "enriched", group="packers", concurrency=50, retry=lambda attempt: "50ms")

    def count(name: str) -> None:
        counts[name] += 1
        if counts["packed"] + counts["rejected"] == orders:
            worker.stop()

    @worker.handle
    async def handle(job: Job) -> None:
        order = json.loads(job.value)
        if order.get("name") is None:
            count("rejected")
            raise Reject(f"order {order['id']} is from nobody that we know")
        if order["id"] % 25 == 0 and job.attempt == 1:
            counts["tried again"] += 1
            raise RuntimeError("out of boxes")
        count("packed")

    await worker.run()
    return counts


if __name__ == "__main__":
    asyncio.run(open_shop("http://127.0.0.1:8080"))
    asyncio.run(take_orders("127.0.0.1:9092", 1000))

"""A shop as a FastAPI service: it takes orders at once, hands the work to a queue, and tells customers where theirs is.

    make run
    pip install fastapi uvicorn
    uvicorn --factory examples.shop.app:shop --port 8000
    curl -s http://127.0.0.1:8000/orders --json '{"customer": "ada", "items": ["apple"]}'
    curl -s http://127.0.0.1:8000/orders/0/0

An order is acknowledged when it is on disk. Sent again with the same `Idempotency-Key` it is taken once.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel, Field

from goqueue.client import Admin, HttpRefused

TOPIC = "shop-orders"
DAY_MS = 86_400_000


class Order(BaseModel):
    customer: str = Field(min_length=1, max_length=100)
    items: list[str] = Field(min_length=1, max_length=100)


class Taken(BaseModel):
    partition: int
    offset: int


def shop(server: str = "http://127.0.0.1:8080") -> FastAPI:
    queue = Admin(server)

    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        async with queue:
            if TOPIC not in await queue.topics():
                await queue.create_topic(TOPIC, partitions=3, dedup_ms=DAY_MS)
            yield

    app = FastAPI(title="A shop", lifespan=life)

    @app.post("/orders", status_code=202)
    async def take(order: Order, idempotency_key: Annotated[str | None, Header()] = None) -> Taken:
        headers = {"gq-dedup-id": idempotency_key} if idempotency_key else {}
        message = {"value": order.model_dump_json(), "key": order.customer, "headers": headers}
        (sent,) = await queue.publish(TOPIC, [message])
        if sent.offset < 0:
            raise HTTPException(503, str(sent.error))
        return Taken(partition=sent.partition, offset=sent.offset)

    @app.get("/orders/{partition}/{offset}")
    async def where(partition: int, offset: int) -> dict[str, str]:
        try:
            told = await queue.why(TOPIC, partition, offset)
        except HttpRefused as error:
            raise HTTPException(404 if error.status in (400, 404) else 503, str(error)) from error
        return {"state": told.state, "answer": told.answer}

    return app

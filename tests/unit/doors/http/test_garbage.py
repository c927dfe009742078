"""No operation leaves reference cycles: the collector that has to free them stops everybody."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from goqueue.doors.sqs.app import TARGET
from goqueue.doors.sqs.handlers.table import ACTIONS
from goqueue.testing import broker
from goqueue.wire.rest.operations.table import OPERATIONS
from tests.garbage import garbage
from tests.unit.doors.http.bare import GROUP, TOPIC, Answered, Asked, Bare, samples
from tests.unit.testing.loops import turn

SAMPLES = samples()
TIMES = 15
TIMES_STORY = 50
WARM_UP = 2

SQS_BODY = {
    "QueueUrl": f"http://localhost/000000000000/{TOPIC}",
    "QueueName": "other",
    "ReceiptHandle": "AQ",
    "MessageBody": "x",
    "VisibilityTimeout": 1,
    "Entries": [{"Id": "1", "MessageBody": "x", "ReceiptHandle": "AQ", "VisibilityTimeout": 1}],
    "Attributes": {"VisibilityTimeout": "30"},
    "Tags": {"a": "b"},
    "TagKeys": ["a"],
    "SourceArn": f"arn:aws:sqs:goqueue:000000000000:{TOPIC}",
    "TaskHandle": "none",
}
"""Every action takes of it what it knows."""


def sqs(action: str) -> tuple[Asked, tuple[tuple[bytes, bytes], ...]]:
    return Asked("POST", "/", SQS_BODY), ((TARGET, f"AmazonSQS.{action}".encode()),)


Once = Callable[[Bare], Awaitable[None]]


def repeat(once: Once, times: int) -> dict[str, int]:
    """With a topic that has a message."""

    async def run() -> dict[str, int]:
        async with broker() as b:
            bare = Bare(b)
            await b.create_topic(TOPIC)
            await b.publish(TOPIC, b"x")
            for _ in range(WARM_UP):
                await once(bare)
            with garbage() as found:
                for _ in range(times):
                    await once(bare)
                await turn()
        return dict(found)

    return asyncio.run(run())


@pytest.mark.parametrize("tag", sorted({operation.tag for operation in OPERATIONS}))
def test_no_operation_leaves_garbage(tag: str) -> None:
    names = [operation.name for operation in OPERATIONS if operation.tag == tag]

    async def once(bare: Bare) -> None:
        await bare.ask(SAMPLES["create_topic"])  # it may have been deleted
        for name in names:
            waiting = asyncio.ensure_future(bare.ask(SAMPLES[name]))
            for _ in range(20):
                await turn()
            if not waiting.done():  # a stream, or a poll
                waiting.cancel()
            answered = await waiting
            assert answered.status < 500 or answered.status == 503, (name, answered)

    assert repeat(once, TIMES) == {}


def test_no_action_of_sqs_leaves_garbage() -> None:
    async def once(bare: Bare) -> None:
        for action in ACTIONS:
            asked, headers = sqs(action)
            assert (await bare.ask(asked, headers=headers)).status < 500, action
            if TOPIC not in bare.b.broker.topics.image.topics:
                await bare.b.create_topic(TOPIC)

    assert repeat(once, TIMES) == {}


# -- what needs more than one request


async def a_poll_that_waits_in_vain(bare: Bare) -> None:
    waiting = asyncio.ensure_future(bare.ask(Asked("POST", "/topics/nothing/receive", {"group": GROUP, "wait": "1s"})))
    await bare.b.advance("2s")
    assert (await waiting).json["messages"] == []


async def a_poll_that_is_woken_and_acknowledged(bare: Bare) -> None:
    waiting = asyncio.ensure_future(bare.ask(Asked("POST", f"/topics/{TOPIC}/receive", {"group": GROUP, "wait": "9s"})))
    await turn()
    await bare.ask(Asked("POST", f"/topics/{TOPIC}/messages", {"messages": [{"value": "x"}]}))
    (message,) = (await waiting).json["messages"]
    await bare.ask(Asked("POST", "/messages/ack", {"receipt_handle": message["receipt_handle"]}))


async def a_poll_of_a_member(bare: Bare) -> None:
    joined = await bare.ask(Asked("POST", "/groups/members/join", {"client_id": "c", "topics": [TOPIC]}))
    member = joined.json["member_id"]
    waiting = asyncio.ensure_future(bare.ask(Asked("GET", f"/groups/members/poll?member_id={member}&timeout=1s")))
    await bare.b.advance("2s")
    assert (await waiting).status == 200
    await bare.ask(Asked("POST", "/groups/members/leave", {"member_id": member}))


async def a_stream_whose_client_leaves(bare: Bare) -> None:
    waiting = asyncio.ensure_future(bare.ask(Asked("GET", f"/topics/{TOPIC}/follow"), leaves=True))
    assert (await waiting).status == 200


async def a_poll_whose_client_leaves(bare: Bare) -> None:
    asked = Asked("POST", "/topics/nothing/receive", {"group": GROUP, "wait": "9s"})
    assert await bare.ask(asked, leaves=True) == Answered(0, b"")


async def a_long_poll_of_sqs(bare: Bare) -> None:
    headers = ((TARGET, b"AmazonSQS.ReceiveMessage"),)
    asked = Asked("POST", "/", {"QueueUrl": "http://localhost/000000000000/nothing", "WaitTimeSeconds": 1})
    waiting = asyncio.ensure_future(bare.ask(asked, headers=headers))
    await bare.b.advance("2s")
    assert (await waiting).status == 200


STORIES: list[Once] = [
    a_poll_that_waits_in_vain,
    a_poll_that_is_woken_and_acknowledged,
    a_poll_of_a_member,
    a_stream_whose_client_leaves,
    a_poll_whose_client_leaves,
    a_long_poll_of_sqs,
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_what_waits_leaves_no_garbage(story: Once) -> None:
    async def once(bare: Bare) -> None:
        if "nothing" not in bare.b.broker.topics.image.topics:
            await bare.b.create_topic("nothing")
            await bare.b.receive(TOPIC, GROUP)
        await story(bare)

    assert repeat(once, TIMES_STORY) == {}

"""`goqueue consume`: messages of a topic, as a stream that reading does not change, or from the queue of a group."""

import asyncio
import json
import os
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, Literal

from msgspec import UNSET

from goqueue.cli.call import Call
from goqueue.cli.exits import EXIT_FAILED, complain
from goqueue.cli.output import Output, cell, padded, plain
from goqueue.cli.run.decoding import Decoder
from goqueue.cli.run.message_format import Filter, Format, headers_of, value_of
from goqueue.model.moments import parse_timestamp_ms

PAGE = 1000
QUEUE_PAGE = 100
WAIT_MS = 1000
FOLLOW_WAIT_MS = 20_000
TITLES = ("PARTITION", "OFFSET", "TIMESTAMP", "KEY", "VALUE")
WIDTHS = (9, 9, 24, 12, 0)

Start = Literal["earliest", "latest"]


async def consume(call: Call) -> int:
    _check(call)
    with _ends_with_its_reader():
        if call.given.group is not None:
            return await _from_queue(call, Showing(call))
        await _from_log(call, Showing(call))
    return 0


def _check(call: Call) -> None:
    given = call.given
    if given.offset is not None and given.partition is None:
        given.refuse("--offset needs --partition: every partition counts on its own")
    if given.group is None:
        for name in ("ack", "lease", "wait"):
            if getattr(given, name) is not None:
                given.refuse(f"--{name} is for messages of a group: say --group, too")
    elif not Filter(given).is_empty and given.ack in (None, "auto", "reject"):
        given.refuse("a filter hides messages that --group would settle: say --ack none or nack, or leave out --group")
    elif given.offset is not None or given.from_time is not None or given.to_time is not None:
        given.refuse("a group knows where it is: set it back with goqueue group reset-offsets")


@contextmanager
def _ends_with_its_reader() -> Iterator[None]:
    """As soon as nobody reads our pipe any more, not only with the next message."""
    task, loop, gone = asyncio.current_task(), asyncio.get_running_loop(), []
    assert task is not None

    def stop() -> None:
        gone.append(True)
        loop.remove_reader(output)
        task.cancel()

    try:
        output = sys.stdout.fileno()
        is_pipe = stat.S_ISFIFO(os.fstat(output).st_mode)
    except OSError:  # in a test, stdout may be no file
        is_pipe = False
        output = -1
    if is_pipe:
        loop.add_reader(output, stop)  # the writing end is never readable, but it breaks
    try:
        yield
    except asyncio.CancelledError:
        if gone:
            raise BrokenPipeError from None
        raise
    finally:
        if is_pipe:
            loop.remove_reader(output)


class Showing:
    """Writes messages, each as it comes."""

    def __init__(self, call: Call) -> None:
        self._out: Output = call.out
        self._topic = call.given.topic
        self._limit: int | None = call.given.limit
        self._filter = Filter(call.given)
        self._format = None if call.given.format is None else Format(call.given.format)
        self._decoder = Decoder(call.admin) if call.given.decode else None
        self._shown = 0

    @property
    def page(self) -> int:
        """How many to ask for at once."""
        return min(PAGE, self.left) if self._filter.is_empty else PAGE

    @property
    def left(self) -> int:
        return sys.maxsize if self._limit is None else self._limit - self._shown

    async def show(self, message: Any) -> None:
        if not self._filter.passes(message):
            return
        value = value_of(message)
        if self._decoder is not None and value is not None:
            decoded = await self._decoder.text(value, headers_of(message))
            if decoded is not None:
                value, message.value, message.value_base64 = decoded.encode(), decoded, UNSET
        self._shown += 1
        if self._format is not None:
            self._out.raw(self._format.shown(message, self._topic, value))
        elif self._out.is_for_a_person:
            if self._shown == 1:
                self._out.line(_row(TITLES))
            shown = message.value if message.value is not None else message.value_base64
            cells = (message.partition, message.offset, message.timestamp, message.key, shown)
            self._out.line(_row([cell(each) for each in cells]))
        elif self._out.form == "value":
            self._out.raw((value or b"") + b"\n")
        elif self._out.form == "json":
            self._out.line(json.dumps({"topic": self._topic, **plain(message)}, ensure_ascii=False))
        else:
            self._out.data([{"topic": self._topic, **plain(message)}])


def _row(texts: Any) -> str:
    return "  ".join(padded(text, width) for text, width in zip(texts, WIDTHS)).rstrip()


def _moment_ms(message: Any) -> int:
    return parse_timestamp_ms(message.timestamp, 0)


# -- as a stream


async def _from_log(call: Call, showing: Showing) -> None:
    given = call.given
    if not given.follow:
        await _what_is_there(call, showing)
        return
    start: Start | None = "earliest" if given.from_beginning else "latest" if given.from_latest else None
    followed = call.admin.follow(
        given.topic, partition=given.partition, start=start, offset=given.offset, from_time=given.from_time
    )
    async with aclosing(followed) as messages:
        async for message in messages:
            if given.to_time is not None and _moment_ms(message) >= given.to_time:
                break
            await showing.show(message)
            call.out.flush()
            if not showing.left:
                break


async def _what_is_there(call: Call, showing: Showing) -> None:
    """Up to the end as it is now, by time over all partitions."""
    given = call.given
    topic = await call.admin.topic(given.topic)
    if given.from_latest:
        return
    numbers = range(topic.partitions) if given.partition is None else [given.partition]
    streams = []
    for number in numbers:
        place = topic.partition_offsets.get(str(number))
        # A partition that is not there: the broker says so, better than we could.
        end = place.next if place is not None else 0
        streams.append(_of_partition(call, number, end, showing.page))
    async for message in _merged(streams):
        await showing.show(message)
        if not showing.left:
            return


async def _of_partition(call: Call, partition: int, end: int, page: int) -> AsyncIterator[Any]:
    given = call.given
    offset: int | None = given.offset
    from_time: int | None = given.from_time
    while True:
        found = await call.admin.read(given.topic, partition, offset=offset, from_time=from_time, limit=page)
        for message in found.messages:
            is_late = given.to_time is not None and _moment_ms(message) >= given.to_time
            if message.offset >= end:
                return
            if not is_late and (given.from_time is None or _moment_ms(message) >= given.from_time):
                yield message
        if found.next_offset >= end or found.next_offset == offset:
            return
        offset, from_time = found.next_offset, None


async def _merged(streams: list[AsyncIterator[Any]]) -> AsyncIterator[Any]:
    """By time; within a partition always by offset."""
    heads = []
    for stream in streams:
        head = await anext(stream, None)
        if head is not None:
            heads.append([_moment_ms(head), head.partition, head, stream])
    while heads:
        first = min(heads, key=lambda each: (each[0], each[1]))
        yield first[2]
        head = await anext(first[3], None)
        if head is None:
            heads.remove(first)
        else:
            first[0], first[2] = _moment_ms(head), head


# -- as a queue


async def _from_queue(call: Call, showing: Showing) -> int:
    given = call.given
    start: Start = "latest" if given.from_latest else "earliest"
    wait_ms = given.wait if given.wait is not None else FOLLOW_WAIT_MS if given.follow else WAIT_MS
    failed = 0
    while showing.left:
        found = await call.admin.receive(
            given.topic,
            given.group,
            limit=min(QUEUE_PAGE, showing.left),
            wait_ms=wait_ms,
            lease=given.lease,
            consumer=f"goqueue-cli-{os.getpid()}",
            partition=given.partition,
            start=start,
        )
        if not found and not given.follow:
            break
        for message in found:
            await showing.show(message)
        # Not settled before it was written: who reads our output has it then, or gets it again.
        call.out.flush()
        failed += await _settle(call, [each.receipt_handle for each in found])
        if given.ack in ("nack", "none") and not given.follow and given.limit is None:
            break  # they would come again and again
    return EXIT_FAILED if failed else 0


async def _settle(call: Call, receipts: list[str]) -> int:
    mode = call.given.ack or "auto"
    if mode == "none" or not receipts:
        return 0
    action: Literal["ack", "nack", "reject"] = "ack" if mode == "auto" else "nack" if mode == "nack" else "reject"
    results = await call.admin.settle(receipts, action, reason=_reason(action))
    problems = [each for each in results if not each.success]
    for each in problems[:5]:
        complain(f"goqueue: a message was shown but could not be settled, and comes again: {each.error}", EXIT_FAILED)
    return len(problems)


def _reason(action: str) -> str | None:
    return "rejected with goqueue consume" if action == "reject" else None

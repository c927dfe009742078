"""`goqueue produce`: messages from the command line, a file or stdin, one a line."""

import asyncio
import json
import os
import stat
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec

from goqueue.cli.call import Call
from goqueue.cli.exits import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, CommandFailed, complain
from goqueue.cli.output import cell, count, plain

PIECE_BYTES = 256 * 1024
LINE_BYTES_MAX = 16 * 1024 * 1024
BATCH_MESSAGES_MAX = 1000
BATCH_BYTES_MAX = 4 * 1024 * 1024
SHOWN_PROBLEMS_MAX = 20
FIELDS = frozenset(
    (
        "value",
        "value_base64",
        "key",
        "key_base64",
        "headers",
        "headers_base64",
        "header_list",
        "timestamp",
        "partition",
        "priority",
        "delay",
        "deliver_at",
        "deliverAt",
        "ttl",
        "dedup_id",
    )
)
WHERE_IT_WAS = frozenset(("topic", "offset", "delivery_count", "receipt_handle", "lease_until"))
"""What `goqueue consume -o json` writes beside the message itself."""
PRIORITY = "gq-priority"


class BadLine(Exception):
    """A line that is not what it was said to be."""


async def produce(call: Call) -> int:
    given = call.given
    told = [*given.message, *([given.value] if given.value not in (None, "-") else [])]
    if told and (given.file is not None or given.value == "-"):
        given.refuse("say the message, or where to read messages, not both")
    if given.json and given.text:
        given.refuse("--json and --text cannot both hold")
    sending = Sending(call)
    try:
        if told:
            await sending.send([_wishes(given) | {"value": text} for text in told])
        else:
            await _send_lines(call, sending)
    except asyncio.CancelledError:
        call.progress.clear()
        more = f"of {count(sending.unanswered, 'message')} more no answer has come" if sending.unanswered else ""
        words = f"{count(sending.sent, 'message')} went out{'; ' + more if more else ', and no more'}"
        complain(f"goqueue: stopped; {words}", EXIT_INTERRUPTED)
        raise
    return sending.end()


async def _send_lines(call: Call, sending: "Sending") -> None:
    given = call.given
    file, total = _opened(given.file if given.value is None else "-")
    number = read = 0
    try:
        async for lines in _lines(file):
            batch: list[dict[str, Any]] = []
            size = 0
            for line in lines:
                number += 1
                read += len(line) + 1
                try:
                    message = _message(given, line, number)
                except BadLine as error:
                    await sending.send(batch)
                    words = f"{error}\n  the {sending.sent} before it were published; go on from line {number + 1}"
                    raise CommandFailed(words) from None
                if message is None:
                    continue
                batch.append(message)
                size += len(line)
                if len(batch) == BATCH_MESSAGES_MAX or size > BATCH_BYTES_MAX:
                    await sending.send(batch)
                    batch, size = [], 0
            await sending.send(batch)
            if total:
                call.progress.show("produce", min(read, total), total)
    finally:
        if file != sys.stdin.fileno():
            os.close(file)


def _opened(name: str | None) -> tuple[int, int]:
    """And how many bytes it has; 0: nobody knows."""
    if name in (None, "-"):
        return sys.stdin.fileno(), 0
    try:
        file = os.open(str(name), os.O_RDONLY)
    except OSError as error:
        raise CommandFailed(f"cannot read {name}: {error.strerror}", EXIT_USAGE) from None
    return file, Path(str(name)).stat().st_size


async def _lines(file: int) -> AsyncIterator[list[bytes]]:
    """As they come: from a pipe or a terminal at once, from a file by the piece."""
    is_ready_always = stat.S_ISREG(os.fstat(file).st_mode)
    rest = b""
    while True:
        if not is_ready_always:
            await _readable(file)
        piece = os.read(file, PIECE_BYTES)
        if not piece:
            break
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > LINE_BYTES_MAX:
            raise CommandFailed(f"a line is longer than {LINE_BYTES_MAX // 2**20} MiB", EXIT_USAGE)
        if lines:
            yield lines
    if rest:
        yield [rest]


async def _readable(file: int) -> None:
    """So that Ctrl-C is heard while nothing comes."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(file, ready.set)
    except OSError:  # neither file nor pipe, such as /dev/null: there is nothing to wait for
        return
    try:
        await ready.wait()
    finally:
        loop.remove_reader(file)


def _wishes(given: Namespace) -> dict[str, Any]:
    wishes = {
        "key": given.key,
        "headers": dict(given.header) or None,
        "partition": given.partition,
        "priority": given.priority,
        "delay": given.delay,
        "deliver_at": given.at,
        "ttl": given.ttl,
    }
    return {name: value for name, value in wishes.items() if value is not None}


def _message(given: Namespace, raw: bytes, number: int) -> dict[str, Any] | None:
    line = raw.removesuffix(b"\r")
    is_file = given.file not in (None, "-")
    if not line.strip() or (is_file and line.startswith(b"#")):
        return None
    parsed = None if given.text else _parsed(line)
    if parsed is None:
        if given.json:
            shown = cell(line.decode(errors="replace"))
            raise BadLine(f"line {number} is no JSON object with the fields of a message: {shown}")
        return _wishes(given) | _value(line)
    return _merged(_wishes(given), parsed)


def _merged(wishes: dict[str, Any], parsed: dict[str, Any]) -> dict[str, Any]:
    """What a line says itself goes before what was said for all."""
    for_all = wishes.pop("headers", {})
    merged = wishes | {name: value for name, value in parsed.items() if value is not None}
    if "key_base64" in parsed:
        merged.pop("key", None)
    if "header_list" in merged:
        added = [{"name": name, "value": value} for name, value in for_all.items()]
        return merged | {"header_list": [*added, *merged["header_list"]]}
    headers = for_all | merged.get("headers", {})
    return merged | ({"headers": headers} if headers else {})


def _value(line: bytes) -> dict[str, Any]:
    try:
        return {"value": line.decode()}
    except UnicodeDecodeError:
        from base64 import b64encode

        return {"value_base64": b64encode(line).decode()}


def _parsed(line: bytes) -> dict[str, Any] | None:
    """None: not a message, though perhaps JSON that is the value of one."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        found = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not found.keys() <= FIELDS | WHERE_IT_WAS or not _has_headers(found):
        return None
    # A value of null is a tombstone. Other kinds of value make it JSON that is itself the value of a message.
    if not isinstance(found.get("value"), str | None) or found.keys().isdisjoint(("value", "value_base64")):
        return None
    return _as_new(found) if "offset" in found else found


def _has_headers(found: dict[str, Any]) -> bool:
    """Whether they are what headers can be, if there are any."""
    listed = found.get("header_list")
    return (
        isinstance(found.get("headers"), dict | None)
        and isinstance(found.get("headers_base64"), dict | None)
        and (listed is None or (isinstance(listed, list) and all(isinstance(each, dict) for each in listed)))
    )


def _as_new(found: dict[str, Any]) -> dict[str, Any]:
    """A message that `goqueue consume` wrote: the same content, wherever it goes now."""
    kept = {name: value for name, value in found.items() if name in FIELDS and name != "partition"}
    if kept.get("header_list"):
        kept.pop("headers", None)
        kept.pop("headers_base64", None)
    # The priority that is shown comes from this header, and the header goes along.
    if any(each == PRIORITY for each in _header_names(kept)):
        kept.pop("priority", None)
    return kept


def _header_names(message: dict[str, Any]) -> Iterator[str]:
    yield from message.get("headers") or ()
    yield from (each.get("name") for each in message.get("header_list") or ())


class Sending:
    """Sends batches, and remembers what became of them."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.sent = self._failed = 0
        self.unanswered = 0
        """Under way: whether they were published nobody knows yet."""
        self._is_first = True

    async def send(self, batch: list[dict[str, Any]]) -> None:
        for some in _parts(batch):
            self.unanswered = len(some)
            results = await self._call.admin.publish(self._call.given.topic, some)
            self.unanswered = 0
            for message, result in zip(some, results):
                self._note(message, result)
            self._call.out.flush()

    def _note(self, message: dict[str, Any], result: Any) -> None:
        if result.error:
            self._failed += 1
            if self._failed <= SHOWN_PROBLEMS_MAX:
                value = cell(message.get("value") or message.get("value_base64"))
                complain(f"goqueue: {value} was not published: {result.error}", EXIT_FAILED)
            return
        self.sent += 1
        out = self._call.out
        topic = self._call.given.topic
        if not out.is_for_a_person:
            shown = {"topic": topic, **plain(result)}
            if out.form == "json":
                out.line(json.dumps(shown, ensure_ascii=False))
            else:
                out.data([shown])
        elif self.sent <= 1 or self._call.given.message:
            due = f", comes at {result.deliver_at}" if result.delayed else ""
            out.line(f"{topic}/{result.partition}/{result.offset}{due} ({result.durability})")

    def end(self) -> int:
        self._call.progress.clear()
        if self._call.out.is_for_a_person and self.sent > 1 and not self._call.given.message:
            self._call.out.line(f"... {self.sent:,} messages published")
        if self._failed:
            return complain(f"goqueue: {self._failed} of {self._failed + self.sent} were not published", EXIT_FAILED)
        return 0


def _parts(batch: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for begin in range(0, len(batch), BATCH_MESSAGES_MAX):
        yield batch[begin : begin + BATCH_MESSAGES_MAX]

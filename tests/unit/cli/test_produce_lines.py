"""Lines that `goqueue produce` reads: whatever stands in them, they become messages or are refused in words."""

import asyncio
from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import pytest

from goqueue.cli.run.message_format import Filter
from goqueue.cli.run.produce import BadLine, Sending, _message, produce
from tests.unit.testing.loops import in_loop

NOTHING: dict[str, Any] = {
    "key": None,
    "header": [],
    "partition": None,
    "priority": None,
    "delay": None,
    "at": None,
    "ttl": None,
}


def message_of(line: bytes, *, json: bool = False) -> dict[str, Any] | None:
    return _message(Namespace(file=None, text=False, json=json, **NOTHING), line, 1)


@pytest.mark.parametrize(
    "line",
    [
        b'{"value": "x", "headers": "abc"}',
        b'{"value": "x", "headers": ["abc"]}',
        b'{"value": "x", "header_list": 5}',
        b'{"value": "x", "offset": 1, "header_list": ["abc"]}',
        b'{"value": "x", "key_base64": 5, "headers_base64": []}',
        b'{"value": "\\ud800"}',
        b'{"value": ' + b"[" * 100_000,
    ],
)
def test_json_that_is_no_message_is_the_value_of_one(line: bytes) -> None:
    assert message_of(line) == {"value": line.decode()}
    with pytest.raises(BadLine, match="line 1 is no JSON object"):
        message_of(line, json=True)


def test_a_message_keeps_its_fields() -> None:
    line = b'{"value": null, "headers": {"a": null}, "offset": 4, "partition": 3, "topic": "t", "timestamp": "5"}'
    assert message_of(line) == {"headers": {"a": None}, "timestamp": "5"}


@in_loop
async def test_who_stops_in_the_middle_hears_of_what_nobody_answered_for(capsys: pytest.CaptureFixture[str]) -> None:
    asked = asyncio.Event()

    async def publish(topic: str, messages: list[Any]) -> list[Any]:
        asked.set()
        await asyncio.Event().wait()
        return []

    given = Namespace(topic="t", message=["a", "b"], value=None, file=None, json=False, text=False, **NOTHING)
    call: Any = SimpleNamespace(
        given=given, admin=SimpleNamespace(publish=publish), progress=SimpleNamespace(clear=lambda: None)
    )
    running = asyncio.create_task(produce(call))
    await asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert "0 messages went out; of 2 messages more no answer has come" in capsys.readouterr().err
    assert Sending(call).unanswered == 0


def test_a_header_is_found_wherever_it_stands() -> None:
    given = Namespace(key=None, contains=None, header=[("a", "1")], priority=None)
    twice = [SimpleNamespace(name="a", value=text, value_base64=None) for text in ("1", "2")]
    message = SimpleNamespace(header_list=twice)
    assert Filter(given).passes(message)

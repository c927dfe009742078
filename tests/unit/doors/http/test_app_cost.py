"""What each HTTP door of a process has in common is found out once: a test may make hundreds of them."""

import asyncio
import importlib.metadata
from typing import Any, NoReturn

import msgspec
import pytest

from goqueue.testing import broker
from tests.unit.doors.http.bare import Bare


def test_a_second_door_looks_up_neither_fields_nor_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked_up(*_: Any) -> NoReturn:
        raise AssertionError("it is known")

    async def make() -> None:
        async with broker() as b:
            Bare(b)
            monkeypatch.setattr(msgspec.structs, "fields", looked_up)
            monkeypatch.setattr(importlib.metadata, "distribution", looked_up)
            Bare(b)
        async with broker() as other:
            Bare(other)

    asyncio.run(make())

"""`goqueue version`."""

from collections.abc import Coroutine
from typing import Any

from goqueue.cli.call import Call
from goqueue.model.own_version import own_version


def show(call: Call) -> Coroutine[Any, Any, None] | None:
    if call.given.remote:
        return _show_both(call)
    call.out.done(f"goqueue {own_version()}", {"client": own_version()})
    return None


async def _show_both(call: Call) -> None:
    own, other = own_version(), await call.admin.version()
    words = f"goqueue {own}\nserver {other} ({call.target.server})"
    call.out.done(words, {"client": own, "server": other, "address": call.target.server})

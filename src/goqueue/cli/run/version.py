"""`goqueue version`."""

from collections.abc import Coroutine
from importlib.metadata import version
from typing import Any

from goqueue.cli.call import Call


def show(call: Call) -> Coroutine[Any, Any, None] | None:
    if call.given.remote:
        return _show_both(call)
    call.out.done(f"goqueue {version('goqueue')}", {"client": version("goqueue")})
    return None


async def _show_both(call: Call) -> None:
    own, other = version("goqueue"), await call.admin.version()
    words = f"goqueue {own}\nserver {other} ({call.target.server})"
    call.out.done(words, {"client": own, "server": other, "address": call.target.server})

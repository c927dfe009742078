"""What the parts of `Admin` share: a way to ask for any operation."""

from collections.abc import AsyncIterator
from typing import Any, Protocol, TypeVar

from goqueue.client.http import Http
from goqueue.wire.rest.operation import Operation

PAGE = 1000
R = TypeVar("R")


class Page(Protocol):
    next: str | None
    """Where the page after it begins; None: this was the last."""


P = TypeVar("P", bound=Page)


class AdminPart:
    def __init__(self, http: Http) -> None:
        self._http = http

    async def call(self, operation: Operation[R], /, **given: Any) -> R:
        """Any operation of the HTTP API (`goqueue.wire.rest.operations`), with what goes into its path, query and body
        by the names of their fields. What is None is not said.
        """
        return await self._http.call(operation, given)

    async def _pages(self, operation: Operation[P], /, **given: Any) -> AsyncIterator[P]:
        """From the first, or from `cursor`, to the last."""
        while True:
            page = await self.call(operation, **given)
            yield page
            if page.next is None:
                return
            given["cursor"] = page.next

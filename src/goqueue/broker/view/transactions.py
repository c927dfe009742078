"""Transactions of one tenant, found by their names; and whose a producer is that is known by its number alone."""

from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

from goqueue.broker.transactions.listing import Page, Wanted
from goqueue.broker.transactions.steps import unknown_producer
from goqueue.broker.view.ports import Port
from goqueue.broker.view.shown import full_regex, shown
from goqueue.model.access import Kind
from goqueue.model.transactions import Producer

FOR_A_PRODUCER = frozenset({"add_partition", "begin", "end", "find", "publish"})
ANY_PRODUCER = "publish_as"
"""Also for one without transactions: of those nothing is known but their numbers."""


class TransactionListPort(Port):
    def __getattr__(self, name: str) -> Any:
        if self._scope.tenancy.is_default or name not in ("counting", "paging", "walking"):
            return super().__getattr__(name)
        if name == "walking":
            return self._walking(super().__getattr__(name))
        self._scope.admit_total(Kind.TRANSACTIONAL_ID)
        return self._counting if name == "counting" else self._paging

    def _paging(self, state: str | None, after: str | None, limit: int, skip: int = 0) -> Generator[None, None, Page]:
        tenancy = self._scope.tenancy
        after = None if after is None else tenancy.full(after)
        page = yield from self._service.paging(state, after, limit, skip, tenancy.prefix)
        mapped: Page = shown(tenancy, page)
        return mapped

    def _walking(self, walking: Callable[[Wanted], Any]) -> Callable[[Wanted], Any]:
        """A pattern is of the names that the tenant knows."""
        tenancy = self._scope.tenancy
        return lambda wanted: walking(wanted._replace(pattern=full_regex(tenancy, wanted.pattern)))

    def _counting(self) -> Generator[None, None, Counter[str]]:
        counts: Counter[str] = yield from self._service.counting_of(self._scope.tenancy.prefix)
        return counts


class TransactionStepsPort(Port):
    """A producer of another tenant is none, to whoever names its number."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if self._scope.tenancy.is_all or name not in (*FOR_A_PRODUCER, ANY_PRODUCER):
            return found
        made = self.__dict__[name] = self._looking_up(found, needs_one=name != ANY_PRODUCER)
        return made

    def _looking_up(self, found: Callable[..., Any], *, needs_one: bool) -> Callable[..., Any]:
        def call(producer: Producer, *args: Any, **kwargs: Any) -> Any:
            return found(self._whose(producer, needs_one=needs_one), *args, **kwargs)

        return call

    def _whose(self, producer: Producer, *, needs_one: bool) -> Producer:
        if producer.transactional_id:
            return producer
        owner, tenancy = self._service.owner(producer.producer_id), self._scope.tenancy
        if owner is None and not needs_one:
            return producer
        if owner is None or not tenancy.owns(owner):
            raise unknown_producer(producer)
        named: Producer = producer._replace(transactional_id=tenancy.plain(owner))
        return named

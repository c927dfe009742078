"""Transactions as lists that are appended to, after Elle (Kingsbury and Alvaro, VLDB 2020): since every value is
unique, what a reader finds tells who wrote it and in which order, and dependencies follow without knowing anything of
the broker.

Operation: `transaction` asks `steps`: ["append", key, value] or ["read", key]. Its answer has `reads`, for each read a
list of [key, values]: values that stand one behind another in the list of the key, up to its end at that time. `fail`
means that it was aborted. A transaction with `final` read each list whole when all was healed.

The kinds of faults: aborted read, phantom, torn, lost, order, duplicate, cycle.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tools.nemesis.cycles import Edge, find_cycles
from tools.nemesis.history import FAIL, Fault, Operation


class Level(NamedTuple):
    """What transactions promise each other."""

    edges: frozenset[str]
    """Which dependencies must not make a circle."""
    is_atomic: bool
    """Whether a reader may see the first values of a transaction in a list, and not yet the later ones."""


KAFKA = Level(frozenset({"wr", "process"}), is_atomic=False)
"""Kafka's transactions do not keep each other from writing between their own writes: two lists may have two of them in
different orders, and one that stays open hides the end of another. But who reads from a transaction comes after it."""
SERIALIZABLE = Level(frozenset({"wr", "ww", "rw", "process"}), is_atomic=True)


def check_transactions(history: Iterable[Operation], level: Level = KAFKA) -> list[Fault]:
    transactions = [operation for operation in history if operation.what == "transaction"]
    return _Lists(transactions).faults(level)


class _Lists:
    def __init__(self, transactions: Sequence[Operation]) -> None:
        self._transactions = transactions
        self._writers: dict[tuple[Any, Any], int] = {}
        self._appends: list[dict[Any, list[Any]]] = []
        for number, transaction in enumerate(transactions):
            appends: dict[Any, list[Any]] = defaultdict(list)
            for step in transaction.asked.get("steps", ()):
                if step[0] == "append":
                    key = step[1], step[2]
                    if key in self._writers:
                        raise ValueError(f"{key} is appended twice: values must be unique")
                    self._writers[key] = number
                    appends[step[1]].append(step[2])
            self._appends.append(appends)
        self._reads = [
            (number, key, values)
            for number, transaction in enumerate(transactions)
            if transaction.is_ok
            for key, values in transaction.answer.get("reads", ())
        ]
        self._finals: dict[Any, list[Any]] = {
            key: values for number, key, values in self._reads if transactions[number].asked.get("final")
        }
        self._orders = self._longest()

    def _longest(self) -> dict[Any, list[Any]]:
        longest: dict[Any, list[Any]] = {}
        for _, key, values in self._reads:
            if len(values) > len(longest.get(key, ())):
                longest[key] = values
        return longest | self._finals

    def _name(self, number: int) -> str:
        transaction = self._transactions[number]
        return f"the transaction of {transaction.process} with {list(transaction.asked.get('steps', ()))[:4]}"

    def faults(self, level: Level) -> list[Fault]:
        found = [*self._writers_of_reads(), *self._read_orders(), *self._torn_at_the_end()]
        if level.is_atomic:
            found += self._torn_reads()
        return list(dict.fromkeys([*found, *self._cycles(level.edges)]))

    def _writers_of_reads(self) -> Iterator[Fault]:
        for number, key, values in self._reads:
            if len(set(values)) < len(values):
                twice = sorted({value for value in values if values.count(value) > 1})
                yield Fault("duplicate", f"{twice} of {key}, as {self._transactions[number].process} read it")
            for value in values:
                writer = self._writers.get((key, value))
                if writer is None:
                    yield Fault("phantom", f"{value!r} of {key} was appended by nobody")
                elif self._transactions[writer].outcome == FAIL:
                    yield Fault("aborted read", f"{value!r} of {key} was read, but its transaction was aborted")

    def _read_orders(self) -> Iterator[Fault]:
        """Every reading is a run of the whole list: it skips nothing and turns nothing round."""
        places = {key: {value: at for at, value in enumerate(values)} for key, values in self._orders.items()}
        for number, key, values in self._reads:
            known = places.get(key, {})
            at = [known.get(value) for value in values]
            if not values:
                continue
            if at[0] is None or at != list(range(at[0], at[0] + len(at))):
                reader = self._transactions[number].process
                yield Fault(
                    "order", f"{reader} read {_short(values)} of {key}, which stands as {_short(self._orders[key])}"
                )

    def _torn_reads(self) -> Iterator[Fault]:
        """A reading that ends between two values of one transaction saw half of it."""
        for number, key, values in self._reads:
            if not values:
                continue
            writer = self._writers.get((key, values[-1]))
            if writer is None or writer == number:
                continue
            mine = self._appends[writer][key]
            if values[-1] != mine[-1] and set(mine) - set(values) - set(mine[: mine.index(values[-1])]):
                yield Fault("torn", f"{key} was read up to {values[-1]!r}, in the middle of {self._name(writer)}")

    def _torn_at_the_end(self) -> Iterator[Fault]:
        if not self._finals:
            return
        there = {key: set(values) for key, values in self._finals.items()}
        for number, appends in enumerate(self._appends):
            wanted = [(key, value) for key, values in appends.items() if key in there for value in values]
            missing = [(key, value) for key, value in wanted if value not in there[key]]
            outcome = self._transactions[number].outcome
            if missing and outcome != FAIL and len(missing) < len(wanted):
                yield Fault("torn", f"{missing} of {self._name(number)} are not there, the rest is")
            elif missing and self._transactions[number].is_ok:
                yield Fault("lost", f"{missing} of {self._name(number)}, which was committed")

    # -- dependencies

    def _cycles(self, kinds: frozenset[str]) -> Iterator[Fault]:
        graph: dict[int, list[Edge]] = defaultdict(list)
        for begin, edge in self._edges():
            if edge.kind in kinds and begin != edge.end:
                graph[begin].append(edge)
        for cycle in find_cycles(graph):
            steps = ", ".join(f"{self._name(begin)} -{edge.kind}-> {self._name(edge.end)}" for begin, edge in cycle)
            yield Fault("cycle", steps)

    def _edges(self) -> Iterator[tuple[int, Edge]]:
        yield from self._process_order()
        places = {key: {value: at for at, value in enumerate(values)} for key, values in self._orders.items()}
        for key, values in self._orders.items():
            for before, after in pairwise(values):
                writers = self._writers.get((key, before)), self._writers.get((key, after))
                if writers[0] is not None and writers[1] is not None:
                    yield writers[0], Edge(writers[1], "ww")
        for number, key, values in self._reads:
            if self._transactions[number].asked.get("final"):
                continue
            for value in values:
                writer = self._writers.get((key, value))
                if writer is not None:
                    yield writer, Edge(number, "wr")
            following = self._following(key, values, places)
            if following is not None:
                yield number, Edge(following, "rw")

    def _following(self, key: Any, values: Sequence[Any], places: Mapping[Any, Mapping[Any, int]]) -> int | None:
        """Who wrote what the reader has not seen yet."""
        order = self._orders.get(key, [])
        at = places.get(key, {}).get(values[-1], len(order)) + 1 if values else 0
        return self._writers.get((key, order[at])) if at < len(order) else None

    def _process_order(self) -> Iterator[tuple[int, Edge]]:
        last: dict[str, int] = {}
        for number, transaction in enumerate(self._transactions):
            if transaction.outcome != FAIL:
                before = last.get(transaction.process)
                if before is not None and self._transactions[before].ended <= transaction.began:
                    yield before, Edge(number, "process")
                last[transaction.process] = number


def _short(values: Sequence[Any]) -> str:
    return repr(list(values)) if len(values) <= 8 else f"[... {', '.join(map(repr, values[-8:]))}]"

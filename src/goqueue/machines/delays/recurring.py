"""Recurring schedules of the delay machine: which there are, when each runs next, and what is stored about it.

What was missed while nobody was there to run it runs once, as its latest moment, not once for every moment.
"""

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

from msgspec.structs import replace

from goqueue.machines.deadlines import Deadlines
from goqueue.machines.delays.commands import (
    DropRecurring,
    FoundRecurring,
    HoldRecurring,
    PauseRecurring,
    RecurringReply,
    ReleaseRecurring,
    StoreRecurring,
)
from goqueue.machines.delays.cron import NEVER, InvalidCron, Moments
from goqueue.machines.delays.facts import (
    PAUSED,
    RAN,
    RECURRING_KIND,
    STOPPED,
    RecurringHeld,
    RecurringKept,
    RecurringPaused,
    RecurringRan,
    RecurringReleased,
    RecurringStopped,
    RecurringStored,
    Removed,
    number_key,
    read_number_key,
)
from goqueue.machines.delays.target import Target
from goqueue.machines.machine import Fact
from goqueue.model.codes import Code

RECURRING_KINDS = frozenset({RECURRING_KIND, RAN, STOPPED, PAUSED})
NAME_MAX = 255
RUNS_PER_TICK_MAX = 100

RecurringCommand: TypeAlias = StoreRecurring | HoldRecurring | ReleaseRecurring | PauseRecurring | DropRecurring


class Recurring:
    __slots__ = ("is_paused", "is_stopped", "last_ms", "ledger_offset", "moments", "next_ms", "stored")

    def __init__(self, stored: RecurringStored) -> None:
        """`stored` without its body."""
        self.stored = stored
        self.next_ms = stored.next_ms
        self.last_ms = NEVER
        self.ledger_offset = -1
        self.is_stopped = False
        self.is_paused = False
        self.moments: Moments | None = None
        """Read from the expression when first needed."""


class Recurrings:
    def __init__(self) -> None:
        self._by_number: dict[int, Recurring] = {}
        self._by_name: dict[str, Recurring] = {}
        """Invariant: holds those that are not stopped."""
        self._deadlines = Deadlines()
        """Of these, but for those that are parked or will not run again."""
        self._busy: Counter[int] = Counter()
        """Unfinished jobs, by number."""
        self._next_number = 1
        self._held: set[int] = set()
        """Those that do not run yet."""

    # Questions

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def found(self) -> list[FoundRecurring]:
        return [
            FoundRecurring(
                name,
                each.stored.topic,
                each.stored.cron,
                each.stored.timezone,
                each.next_ms,
                each.last_ms,
                each.stored.partition,
                each.ledger_offset,
                each.stored.owner,
                each.stored.owner_host,
                each.is_paused,
            )
            for name, each in sorted(self._by_name.items())
        ]

    def held(self) -> list[str]:
        return [self._by_number[number].stored.name for number in sorted(self._held)]

    def get(self, number: int) -> Recurring:
        return self._by_number[number]

    def next_deadline_ms(self) -> int | None:
        return self._deadlines.earliest_ms()

    def due(self, now_ms: int) -> list[Recurring]:
        return [self._by_name[name] for name in self._deadlines.due(now_ms, RUNS_PER_TICK_MAX)]

    def facts(self) -> Iterator[RecurringKept]:
        for number, each in self._by_number.items():
            stored = each.stored
            yield RecurringKept(
                number,
                stored.name,
                stored.topic,
                stored.topic_id,
                stored.partition,
                stored.cron,
                stored.timezone,
                each.next_ms,
                each.last_ms,
                each.ledger_offset,
                each.is_stopped,
                stored.owner,
                stored.owner_host,
                each.is_paused,
            )

    # Decisions

    def decide(self, command: RecurringCommand, target: Target, now_ms: int) -> tuple[list[Fact], RecurringReply]:
        match command:
            case StoreRecurring():
                return self._decide_store(command, target, now_ms)
            case PauseRecurring():
                return self._decide_pause(command, now_ms)
            case DropRecurring():
                return self._decide_drop(command.name)
        return self._decide_whether_it_runs(command)

    def _decide_store(self, command: StoreRecurring, target: Target, now_ms: int) -> tuple[list[Fact], RecurringReply]:
        name = command.name
        if not 0 < len(name) <= NAME_MAX:
            return [], _refused(f"a recurring schedule needs a name of at most {NAME_MAX} characters")
        try:
            next_ms = Moments(command.cron, command.timezone).after(now_ms)
        except InvalidCron as problem:
            return [], _refused(str(problem))
        if next_ms == NEVER:
            return [], _refused(f"cron expression {command.cron!r} names no moment of the next fifty years")
        stored = RecurringStored(
            self._next_number,
            name,
            target.topic,
            *target.key,
            command.cron,
            command.timezone,
            next_ms,
            command.body,
            command.owner,
            command.owner_host,
        )
        more: list[Fact] = [RecurringHeld(stored.number)] if command.is_held else []
        known = self._by_name.get(name)
        if known is not None and known.is_paused:  # a program that stores it at each start does not resume it
            more.append(RecurringPaused(stored.number, is_paused=True, next_ms=next_ms))
        return [*self._facts_of_end(name), stored, *more], RecurringReply(Code.NONE, next_ms=next_ms)

    def _decide_whether_it_runs(self, command: HoldRecurring | ReleaseRecurring) -> tuple[list[Fact], RecurringReply]:
        known = self._by_name.get(command.name)
        if known is None:
            return [], _refused(f"there is no recurring schedule {command.name!r}")
        number = known.stored.number
        fact = RecurringHeld(number) if isinstance(command, HoldRecurring) else RecurringReleased(number)
        return [fact], RecurringReply(Code.NONE, next_ms=known.next_ms)

    def _decide_pause(self, command: PauseRecurring, now_ms: int) -> tuple[list[Fact], RecurringReply]:
        known = self._by_name.get(command.name)
        if known is None:
            return [], _refused(f"there is no recurring schedule {command.name!r}")
        reply = RecurringReply(Code.NONE, next_ms=known.next_ms)
        if known.is_paused == command.is_paused:
            return [], reply
        moments = None if command.is_paused else _moments(known)
        next_ms = known.next_ms if moments is None else moments.after(now_ms)
        fact = RecurringPaused(known.stored.number, command.is_paused, next_ms)
        return [fact], RecurringReply(Code.NONE, next_ms=next_ms)

    def _decide_drop(self, name: str) -> tuple[list[Fact], RecurringReply]:
        facts = self._facts_of_end(name)
        return facts, RecurringReply(Code.NONE) if facts else _refused(f"there is no recurring schedule {name!r}")

    def _facts_of_end(self, name: str) -> list[Fact]:
        known = self._by_name.get(name)
        if known is None:
            return []
        number = known.stored.number
        return [RecurringStopped(number)] if self._busy[number] else list(removal(number))

    def decide_done(self, number: int) -> list[Fact]:
        """A job of it is finished: one that was only kept for that goes."""
        each = self._by_number.get(number)
        is_last = each is not None and each.is_stopped and self._busy[number] == 1
        return list(removal(number)) if is_last else []

    def decide_run(self, each: Recurring, now_ms: int) -> RecurringRan:
        moments = _moments(each)
        if moments is None:
            return RecurringRan(each.stored.number, each.next_ms, NEVER)
        return RecurringRan(each.stored.number, moments.last(each.next_ms, now_ms), moments.after(now_ms))

    # Changes

    def store(self, fact: RecurringStored) -> None:
        each = Recurring(replace(fact, body=b""))
        self._by_number[fact.number] = self._by_name[fact.name] = each
        self._next_number = max(self._next_number, fact.number + 1)
        self._set_deadline(each)

    def keep(self, fact: RecurringKept) -> None:
        self.store(
            RecurringStored(
                fact.number,
                fact.name,
                fact.topic,
                fact.topic_id,
                fact.partition,
                fact.cron,
                fact.timezone,
                fact.next_ms,
                b"",
                fact.owner,
                fact.owner_host,
            )
        )
        each = self._by_number[fact.number]
        each.last_ms = fact.last_ms
        each.ledger_offset = fact.ledger_offset
        if fact.is_paused:
            self.pause(RecurringPaused(fact.number, is_paused=True, next_ms=fact.next_ms))
        if fact.is_stopped:
            self.stop(fact.number)

    def place(self, number: int, ledger_offset: int) -> None:
        self._by_number[number].ledger_offset = ledger_offset

    def ran(self, fact: RecurringRan) -> None:
        each = self._by_number.get(fact.number)
        if each is not None:  # else a compacted ledger has only the last word on one that is gone
            each.last_ms, each.next_ms = fact.due_ms, fact.next_ms
            self._set_deadline(each)

    def pause(self, fact: RecurringPaused) -> None:
        each = self._by_number.get(fact.number)
        if each is not None:  # else as with `ran`
            each.is_paused, each.next_ms = fact.is_paused, fact.next_ms
            self._set_deadline(each)

    def stop(self, number: int) -> None:
        each = self._by_number.get(number)
        if each is not None:
            each.is_stopped = True
            self._leave(each)

    def forget(self, kind: bytes, key: bytes) -> None:
        if kind == RECURRING_KIND:
            each = self._by_number.pop(read_number_key(key), None)
            if each is not None:
                self._held.discard(each.stored.number)
                self._leave(each)

    def _leave(self, each: Recurring) -> None:
        name = each.stored.name
        if self._by_name.get(name) is each:
            del self._by_name[name]
            self._deadlines.clear(name)

    def begin(self, number: int) -> None:
        self._busy[number] += 1

    def end(self, number: int) -> None:
        self._busy[number] -= 1
        if not self._busy[number]:
            del self._busy[number]

    def hold(self, fact: RecurringHeld) -> None:
        self._held.add(fact.number)
        self._set_deadline(self._by_number[fact.number])

    def release(self, fact: RecurringReleased) -> None:
        self._held.discard(fact.number)
        self._set_deadline(self._by_number[fact.number])

    def park(self, number: int) -> None:
        self._deadlines.clear(self._by_number[number].stored.name)

    def unpark(self, number: int) -> None:
        each = self._by_number.get(number)
        if each is not None:
            self._set_deadline(each)

    def _set_deadline(self, each: Recurring) -> None:
        if self._by_name.get(each.stored.name) is not each:
            return
        if each.next_ms == NEVER or each.is_paused or each.stored.number in self._held:
            self._deadlines.clear(each.stored.name)
        else:
            self._deadlines.set(each.stored.name, each.next_ms)


def removal(number: int) -> Iterator[Removed]:
    """In this order: what says that it must not run outlasts it."""
    for kind in (RECURRING_KIND, RAN, STOPPED, PAUSED):
        yield Removed(number_key(kind, number))


def _moments(each: Recurring) -> Moments | None:
    """None: its time zone is no longer known here."""
    if each.moments is None:
        try:
            each.moments = Moments(each.stored.cron, each.stored.timezone)
        except InvalidCron:
            return None
    return each.moments


def _refused(message: str) -> RecurringReply:
    return RecurringReply(Code.INVALID_REQUEST, message)

"""What a simulation may rely on in its etcd."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from goqueue.cluster.etcd.port import Etcd, EtcdCompacted, EtcdFault, KeyCompare, KeyPut, KeyValue, Range, Txn
from goqueue.testing import VirtualClock
from goqueue.testing.virtual_etcd import LoopTime, VirtualEtcd
from goqueue.testing.virtual_loop import Life, VirtualLoop, let_pass


class World:
    def __init__(self, seed: int = 1) -> None:
        self.clock = VirtualClock()
        self.etcd = VirtualEtcd(self.clock, Random(seed))
        self.one: Etcd = self.etcd.client("one")
        self.two: Etcd = self.etcd.client("two")

    def ask(self, call: Callable[..., None], *args: object, ms: float = 2500) -> Any:
        """The answer; None: there was none in this time."""
        answers: list[Any] = []
        call(*args, answers.append)
        assert not answers, "answered from within the call"
        self.clock.advance(ms)
        assert len(answers) <= 1
        return answers[0] if answers else None

    def put(self, key: bytes, value: bytes | None, lease: int = 0) -> int:
        answer = self.ask(self.one.txn, (), [KeyPut(key, value, lease)], ms=10)
        assert isinstance(answer, Txn)
        assert answer.is_done
        return answer.revision

    def keys(self, prefix: bytes = b"") -> dict[bytes, bytes | None]:
        answer = self.ask(self.one.list, prefix, ms=10)
        assert isinstance(answer, Range)
        return {each.key: each.value for each in answer.entries}


@pytest.fixture
def world() -> World:
    return World()


class Seen:
    def __init__(self, etcd: Etcd, revision: int, prefix: bytes = b"") -> None:
        self.calls: list[tuple[int, list[KeyValue]]] = []
        self.lost: list[EtcdFault] = []
        self.end = etcd.watch(
            prefix, revision, lambda at, events: self.calls.append((at, list(events))), self.lost.append
        )

    @property
    def events(self) -> list[tuple[bytes, bytes | None, int]]:
        return [(each.key, each.value, each.mod_revision) for _, some in self.calls for each in some]


def test_a_transaction_is_done_whole_or_not_at_all(world: World) -> None:
    first = world.put(b"a", b"1")
    refused = world.ask(world.two.txn, [KeyCompare(b"a", first + 1)], [KeyPut(b"a", b"2"), KeyPut(b"b", b"2")])
    assert refused == Txn(False, first)
    done = world.ask(world.two.txn, [KeyCompare(b"a", first)], [KeyPut(b"a", b"2"), KeyPut(b"b", b"2")])
    assert done == Txn(True, first + 1)
    assert world.keys() == {b"a": b"2", b"b": b"2"}
    assert {each.mod_revision for each in world.etcd.keys.values()} == {first + 1}
    assert world.etcd.keys[b"a"].create_revision == first


def test_compares_tell_an_absent_key_and_another_revision(world: World) -> None:
    revision = world.put(b"a", b"1")
    assert not world.ask(world.one.txn, [KeyCompare(b"a", 0)], [KeyPut(b"c", b"")]).is_done
    assert world.ask(world.one.txn, [KeyCompare(b"b", 0)], [KeyPut(b"c", b"")]).is_done
    assert not world.ask(world.one.txn, [KeyCompare(b"a", revision, False)], [KeyPut(b"d", b"")]).is_done
    assert world.ask(world.one.txn, [KeyCompare(b"a", revision + 5, False)], [KeyPut(b"d", b"")]).is_done


def test_a_lease_that_is_not_renewed_ends_with_its_keys(world: World) -> None:
    lease = world.ask(world.one.grant, 4, ms=10)
    world.put(b"live/1", b"x", lease)
    for _ in range(10):
        assert world.ask(world.one.renew, lease, ms=3000) == 4
    assert world.keys() == {b"live/1": b"x"}
    world.clock.advance(4600)
    assert world.keys() == {}
    assert world.ask(world.one.renew, lease) == 0


def test_a_revoked_lease_takes_its_keys_in_one_revision(world: World) -> None:
    lease = world.ask(world.one.grant, 4, ms=10)
    world.put(b"a", b"x", lease)
    revision = world.put(b"b", b"x", lease)
    seen = Seen(world.two, revision + 1)
    assert world.ask(world.two.revoke, lease, ms=10) is None
    assert seen.events == [(b"a", None, revision + 1), (b"b", None, revision + 1)]
    world.ask(world.one.txn, (), [KeyPut(b"a", b"x", lease)])
    assert world.keys() == {}, "a lease that is over takes no keys"


def test_a_key_that_was_put_without_its_lease_outlives_it(world: World) -> None:
    lease = world.ask(world.one.grant, 4, ms=10)
    world.put(b"a", b"x", lease)
    world.put(b"a", b"y")
    world.clock.advance(6000)
    assert world.keys() == {b"a": b"y"}


def test_a_watch_tells_every_change_from_its_revision_on_in_order(world: World) -> None:
    first = world.put(b"k/a", b"1")
    world.put(b"other", b"1")
    seen = Seen(world.two, first, b"k/")
    world.clock.advance(50)
    world.put(b"k/b", b"2")
    world.put(b"k/a", None)
    world.clock.advance(50)
    assert seen.events == [(b"k/a", b"1", first), (b"k/b", b"2", first + 2), (b"k/a", None, first + 3)]
    seen.end()
    world.put(b"k/c", b"3")
    world.clock.advance(20_000)
    assert len(seen.events) == 3


def test_a_watch_without_changes_is_told_that_there_are_none(world: World) -> None:
    revision = world.put(b"a", b"1")
    seen = Seen(world.two, revision + 1)
    world.clock.advance(6000)
    assert seen.calls
    assert all(call == (revision, []) for call in seen.calls)


def test_a_watch_of_what_was_compacted_says_so(world: World) -> None:
    first = world.put(b"a", b"1")
    world.put(b"a", b"2")
    world.etcd.compact()
    seen = Seen(world.two, first)
    world.clock.advance(50)
    assert isinstance(seen.lost[0], EtcdCompacted)
    assert seen.lost[0].revision == first + 1
    assert seen.calls == []


def test_the_answer_may_be_lost_though_it_was_done(world: World) -> None:
    world.etcd.weather_of("one").unanswered = 1.0
    assert isinstance(world.ask(world.one.txn, (), [KeyPut(b"a", b"1")]), EtcdFault)
    assert world.ask(world.two.list, b"").entries[0].value == b"1"


def test_a_late_request_is_done_after_its_sender_gave_up(world: World) -> None:
    world.etcd.weather_of("one").late = 1.0
    world.etcd.weather_of("one").late_ms = (11_000.0, 12_000.0)
    assert isinstance(world.ask(world.one.txn, (), [KeyPut(b"a", b"1")]), EtcdFault)
    assert world.etcd.keys == {}
    world.clock.advance(10_000)
    assert world.etcd.keys[b"a"].value == b"1"


def test_a_host_that_is_cut_off_hears_nothing_and_its_watch_ends(world: World) -> None:
    seen, other = Seen(world.one, 2), Seen(world.two, 2)
    world.etcd.cut("one")
    assert isinstance(world.ask(world.one.list, b""), EtcdFault)
    world.ask(world.two.txn, (), [KeyPut(b"a", b"1")], ms=10)
    world.clock.advance(10_000)
    assert (seen.events, len(seen.lost)) == ([], 1)
    assert (len(other.events), other.lost) == (1, [])
    world.etcd.heal()
    again = Seen(world.one, 2)
    world.clock.advance(50)
    assert again.events == other.events


def test_a_short_cut_holds_a_watch_up_and_loses_nothing(world: World) -> None:
    seen = Seen(world.one, 2)
    world.clock.advance(100)
    world.etcd.cut("one")
    world.ask(world.two.txn, (), [KeyPut(b"a", b"1")], ms=100)
    assert seen.events == []
    world.etcd.heal("one")
    world.clock.advance(100)
    assert (len(seen.events), seen.lost) == (1, [])


def test_answers_alone_can_be_cut(world: World) -> None:
    world.etcd.cut("one", requests=False)
    assert isinstance(world.ask(world.one.txn, (), [KeyPut(b"a", b"1")]), EtcdFault)
    assert world.etcd.keys[b"a"].value == b"1"


@pytest.mark.parametrize("stop", ["pause", "kill"])
def test_an_outage_ends_no_lease(world: World, stop: str) -> None:
    lease = world.ask(world.one.grant, 4, ms=10)
    world.put(b"a", b"x", lease)
    getattr(world.etcd, stop)()
    assert isinstance(world.ask(world.one.renew, lease), EtcdFault)
    world.clock.advance(60_000)
    world.etcd.go_on()
    world.clock.advance(3900)
    assert b"a" in world.etcd.keys
    world.clock.advance(700)
    assert world.etcd.keys == {}


def test_a_restored_backup_is_as_it_was(world: World) -> None:
    revision = world.put(b"a", b"1")
    backup = world.etcd.backup()
    seen = Seen(world.two, revision + 1)
    world.put(b"a", b"2")
    world.put(b"b", b"2")
    world.etcd.restore(backup)
    assert (world.keys(), world.etcd.revision, len(seen.lost)) == ({b"a": b"1"}, revision, 1)


def test_nobody_is_called_after_close(world: World) -> None:
    answers: list[object] = []
    seen = Seen(world.one, 2)
    world.one.txn((), [KeyPut(b"a", b"1")], answers.append)
    world.one.close()
    world.one.list(b"", answers.append)
    world.clock.advance(20_000)
    assert (answers, seen.calls, seen.lost) == ([], [], [])
    assert b"a" in world.etcd.keys, "it was sent before"


def test_the_same_seed_gives_the_same_run() -> None:
    def run(seed: int) -> list[object]:
        world = World(seed)
        world.etcd.weather.slow = world.etcd.weather.late = world.etcd.weather.unanswered = 0.3
        seen, told = Seen(world.two, 2), []
        for number in range(50):
            world.one.txn(
                (), [KeyPut(b"a", b"%d" % number)], lambda answer: told.append((world.clock.now_ms(), str(answer)))
            )
            world.clock.advance(100)
        world.clock.advance(20_000)
        return [seen.calls, told]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_answers_belong_to_the_process_that_asked() -> None:
    loop = VirtualLoop()
    etcd = VirtualEtcd(LoopTime(loop), Random(1))
    heard: list[str] = []

    async def ask(name: str) -> None:
        client = etcd.client(name)
        client.watch(b"", 2, lambda _, events: heard.extend(name for _ in events), lambda fault: None)
        client.txn((), [KeyPut(name.encode(), b"")], lambda answer: heard.append(f"{name} {type(answer).__name__}"))

    async def main() -> None:
        lives = {name: Life(name) for name in ("killed", "other")}
        for name, life in lives.items():
            loop.create_task(ask(name), context=life.context())
        await let_pass(0)
        loop.end(lives["killed"])
        await let_pass(10)

    loop.run_until_complete(main())
    loop.close()
    assert sorted(etcd.keys) == [b"killed", b"other"]
    assert sorted(heard) == ["other", "other", "other Txn"]

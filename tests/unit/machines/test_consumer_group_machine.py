"""Consumers that join, pause, lose answers, leave and come back, over a group that changes and restarts under them."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from goqueue.machines.groups.consumer.facts import ConsumerGroupGone
from goqueue.machines.groups.consumer.group import ConsumerGroup
from goqueue.model.codes import Code
from goqueue.model.topics import Topic
from tests.unit.machines.consumer_groups import Consumer, Host, Partition, settle, topic_id

NAMES = ("a", "b", "c")
CONSUMERS_MAX = 5

pick = st.integers(0, 1_000)
subscriptions = st.sets(st.sampled_from(NAMES), min_size=1).map(sorted)


class Consumption(RuleBasedStateMachine):
    """The model is what each consumer was told and has not given up: `Consumer.holds`."""

    def __init__(self) -> None:
        super().__init__()
        self.consumers: list[Consumer] = []
        self.absent: list[Consumer] = []
        """Static members that mean to come back."""
        self.born = 0
        self.epochs: dict[str, int] = {}

    @initialize(counts=st.lists(st.integers(0, 6), min_size=3, max_size=3))
    def begin(self, counts: list[int]) -> None:
        self.host = Host({name: Topic(name, topic_id(name), count) for name, count in zip(NAMES, counts)})

    def chosen(self, number: int) -> Consumer:
        return self.consumers[number % len(self.consumers)]

    def newcomer(self, names: list[str], instance_id: str | None, regex: str | None = None) -> Consumer:
        self.born += 1
        consumer = Consumer(self.host, f"m{self.born}", *names, regex=regex, instance_id=instance_id)
        self.consumers.append(consumer)
        return consumer

    # -- what consumers do

    @precondition(lambda self: len(self.consumers) + len(self.absent) < CONSUMERS_MAX)
    @rule(names=subscriptions, is_static=st.booleans(), regex=st.sampled_from([None, None, "a|b", "[bc]"]))
    def join(self, names: list[str], is_static: bool, regex: str | None) -> None:
        self.newcomer(names, f"i{self.born}" if is_static else None, regex).beat()

    @precondition(lambda self: self.consumers)
    @rule(number=pick)
    def beat(self, number: int) -> None:
        self.chosen(number).beat()

    @precondition(lambda self: self.consumers)
    @rule(number=pick)
    def beat_and_lose_the_answer(self, number: int) -> None:
        self.chosen(number).beat(loses_reply=True)

    @precondition(lambda self: self.consumers)
    @rule(number=pick)
    def give_up(self, number: int) -> None:
        self.chosen(number).give_up()

    @precondition(lambda self: self.consumers)
    @rule(number=pick)
    def cycle(self, number: int) -> None:
        self.chosen(number).cycle()

    @precondition(lambda self: self.consumers)
    @rule(number=pick, names=subscriptions)
    def subscribe_anew(self, number: int, names: list[str]) -> None:
        consumer = self.chosen(number)
        consumer.names, consumer.has_doubts = tuple(names), True

    @precondition(lambda self: self.consumers)
    @rule(number=pick, assignor=st.sampled_from(["uniform", "range", "roundrobin"]))
    def ask_for_an_assignor(self, number: int, assignor: str) -> None:
        consumer = self.chosen(number)
        consumer.assignor, consumer.has_doubts = assignor, True

    @precondition(lambda self: self.consumers)
    @rule(number=pick)
    def crash_and_rejoin(self, number: int) -> None:
        self.chosen(number).abandon()

    @precondition(lambda self: self.consumers)
    @rule(number=pick)
    def leave(self, number: int) -> None:
        consumer = self.chosen(number)
        self.consumers.remove(consumer)
        if consumer.instance_id is not None and consumer.leave(-2).code == Code.NONE:
            self.absent.append(consumer)
        else:
            consumer.leave()

    @precondition(lambda self: self.absent)
    @rule(number=pick)
    def come_back(self, number: int) -> None:
        old = self.absent.pop(number % len(self.absent))
        reply = self.newcomer(list(old.names), old.instance_id, old.regex).beat()
        assert reply.code == Code.NONE

    # -- what happens to them

    @rule(by_ms=st.sampled_from([100, 500, 3_000, 9_000, 29_000]))
    def time_passes(self, by_ms: int) -> None:
        self.host.advance(by_ms)

    @rule(name=st.sampled_from(NAMES), more=st.integers(0, 3), incarnation=st.integers(0, 1))
    def topics_change(self, name: str, more: int, incarnation: int) -> None:
        """More partitions, or gone, or made again."""
        known = dict(self.host.topics)
        topic = known.pop(name, None)
        if topic is None:
            known[name] = Topic(name, topic_id(name, incarnation), more)
        elif more:
            known[name] = Topic(name, topic.id, min(topic.partitions + more, 9))
        self.host.change_topics(known)

    @precondition(lambda self: self.host.group.state_name == "Empty")
    @rule()
    def delete(self) -> None:
        self.host.store([ConsumerGroupGone("g")])
        self.epochs.clear()

    @rule()
    def restart(self) -> None:
        self.host.restart()

    # -- what must hold

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        if not hasattr(self, "host"):
            return
        owners: dict[Partition, str] = {}
        for consumer in self.consumers:
            if consumer.member_id in self.host.members:  # others were declared dead: what they think does not count
                for partition in consumer.holds:
                    assert owners.setdefault(partition, consumer.member_id) == consumer.member_id

    @invariant()
    def epochs_never_go_back(self) -> None:
        if not hasattr(self, "host"):
            return
        group = self.host.group.describe()
        assert group.target_epoch <= group.epoch
        assert self.epochs.get("group", 0) <= group.epoch
        self.epochs["group"] = group.epoch
        for member in group.members:
            assert member.epoch <= group.target_epoch
            if member.epoch > 0:
                assert self.epochs.get(member.member_id, 0) <= member.epoch
                self.epochs[member.member_id] = member.epoch

    @invariant()
    def replay_gives_an_equal_group(self) -> None:
        if not hasattr(self, "host"):
            return
        snapshot = ConsumerGroup("g", self.host.options)
        for fact in self.host.group.facts():
            snapshot.apply(fact)
        expected = self.host.group._state.durable()
        for other in (self.host.replayed(compacted=False), self.host.replayed(compacted=True), snapshot):
            assert other._state.durable() == expected

    def teardown(self) -> None:
        """Whatever has happened: with working consumers, the group comes to rest on its target."""
        if not hasattr(self, "host"):
            return
        self.host.advance(1)
        if self.absent:
            for consumer in self.consumers:
                consumer.cycle()
            self.host.advance(20_000)
            for consumer in self.consumers:
                consumer.cycle()
            self.host.advance(20_000)
        if not self.consumers:
            return
        settle(self.host, *self.consumers, rounds=6)
        targets = self.host.targets()
        assert {consumer.member_id: consumer.holds for consumer in self.consumers} == targets
        used = self.host.group._state.group
        assert used is not None
        everything = {(each, number) for each, count in used.topics.values() for number in range(count)}
        assert set[Partition]().union(*targets.values()) == everything
        assert self.host.group.state_name == "Stable"
        self.no_partition_has_two_owners()
        self.replay_gives_an_equal_group()


TestConsumption = Consumption.TestCase
TestConsumption.settings = settings(
    max_examples=30, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

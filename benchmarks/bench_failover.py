"""How long nobody is served when the leader is stopped, killed, stands still or is cut off: three real nodes, three
members of etcd, three replicas. The gap is the longest time between two answers to the same user, about the same
partition where it is about one, of the partitions that the node led.

    FAILOVER_ROUNDS=30 make bench ONLY=failover
    FAILOVER_ROUNDS=10 FAILOVER_FAULTS="kill -9,SIGSTOP" make bench ONLY=failover_large

Users of one kind at a time: on few cores, all of them at once would wait for each other without any fault. Beside each
figure stands their longest gap in the seconds before it. Cuts need network namespaces (root), or are made by a
forwarder.
"""

import os
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient

from benchmarks.clusters import bootstrap, leaders, make_topic, town, wait_healed
from benchmarks.failover_users import (
    GroupMember,
    Java,
    JavaReaders,
    Librdkafka,
    Noted,
    OurProducer,
    OurWorker,
    OverHttp,
    Sqs,
    Transactions,
)
from benchmarks.harness import Row, row
from tools.java_users import java_jars
from tools.kafka_jars import NoJars
from tools.nemesis.processes import Node
from tools.nemesis.town import LOOPBACK, NAMESPACES, Town

TOPIC, JOBS = "failover", "failover-jobs"
PARTITIONS = 10
ROUNDS = int(os.environ.get("FAILOVER_ROUNDS", "5"))
USERS = tuple(filter(None, os.environ.get("FAILOVER_USERS", "").split(",")))
"""Parts of the names of those that are wanted. None: all."""
PUBLISHES, OURS = "publish, librdkafka", "publish, goqueue.client"
HTTP = "publish over HTTP through another node"
GROUP, TRANSACTIONS = "group of librdkafka", "transaction of librdkafka"
WORKER, SQS = "goqueue.client Worker", "SQS by boto3: send, receive, delete"
JAVA_PRODUCER, JAVA_TRANSACTIONS, JAVA_READERS = "Java's producer", "Java's transactions", "Java's readers"
JAVA = (JAVA_PRODUCER, JAVA_TRANSACTIONS, JAVA_READERS)
TOGETHER = ((PUBLISHES, GROUP), (TRANSACTIONS,), (OURS, WORKER), (HTTP, SQS), *((each,) for each in JAVA))
"""A group reads what the producer beside it publishes."""
BEATEN_MAX = 6
"""Partitions that are published to all the time: with 1,000 the clients would be all that is measured."""
WARM_S = 2.0
BEFORE_S = 3.0
ENDS_S = 1.0
"""After which nothing that began before is going on: what healing takes is not counted."""
AFTER_S = 1.0
OFFSETS_AT_ONCE = 1000
COMMITS_AT_ONCE = 8
COMMIT_S_MAX = 60.0


class Fault(NamedTuple):
    begin: Callable[[Town, Node], Callable[[], None]]
    """Returns what heals it."""
    bar_s: float
    lasts_s: float
    network: str = LOOPBACK


def _stop(_town: Town, node: Node) -> Callable[[], None]:
    stopping = threading.Thread(target=node.stop)
    stopping.start()

    def heal() -> None:
        stopping.join()
        node.start()

    return heal


def _kill(_town: Town, node: Node) -> Callable[[], None]:
    node.kill()
    return node.start


def _stand_still(_town: Town, node: Node) -> Callable[[], None]:
    node.pause()
    return node.resume


def _cut(town: Town, node: Node) -> Callable[[], None]:
    """From everybody, both ways, clients too: a machine that has vanished."""
    network = town.network
    assert network is not None, "no cuts on loopback addresses"
    others = [one for one in town.processes_in_order if one is not node]
    network.cut(town.number_of(node), [*town.addresses(others), network.clients])
    for other in others:
        network.cut(town.number_of(other), town.addresses([node]))
    return network.heal


FAULTS: dict[str, Fault] = {
    "clean stop": Fault(_stop, 0.2, 8.0),
    "kill -9": Fault(_kill, 2.0, 4.0),
    "SIGSTOP": Fault(_stand_still, 5.0, 7.0),
    "cut": Fault(_cut, 5.0, 7.0, NAMESPACES),
}
CHOSEN = os.environ.get("FAILOVER_FAULTS", ",".join(FAULTS)).split(",")


def run() -> list[Row]:
    return measured(PARTITIONS, facts=0)


def measured(partitions: int, facts: int) -> list[Row]:
    rows: list[Row] = []
    for network in (LOOPBACK, NAMESPACES):
        chosen = {name: one for name, one in FAULTS.items() if name in CHOSEN and one.network == network}
        if chosen:
            rows += _rows(partitions, facts, network, chosen)
    return rows


def _rows(partitions: int, facts: int, network: str, chosen: Mapping[str, Fault]) -> list[Row]:
    rows: list[Row] = []
    with town(3, network) as made:
        make_topic(made, TOPIC, partitions, 3)
        make_topic(made, JOBS, 3, 3)
        make_topic(made, f"{TOPIC}-transactions", partitions, 3)
        _make_facts(made, facts)
        for name, fault in chosen.items():
            gaps: dict[str, list[float]] = {}
            calm: dict[str, float] = {}
            loads: list[float] = []
            title = f"{name}, {partitions} partitions, {facts:,} facts"
            for _ in range(ROUNDS):
                for wanted in TOGETHER:
                    _measure(made, fault, partitions, wanted, gaps, calm)
                    loads.append(os.getloadavg()[0])
            for user, found in gaps.items():
                rows += _shown(f"{title}: {user}", found, calm[user], fault)
            rows.append(row(f"{title}: load of the machine, mean", statistics.mean(loads), "processes"))
    return rows


def _shown(title: str, gaps: list[float], calm_s: float, fault: Fault) -> list[Row]:
    ordered = sorted(gaps)
    p99 = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]
    return [
        row(f"{title}, median of {len(ordered)}", statistics.median(ordered), "s", calm_s),
        row(f"{title}, p99", p99, "s", calm_s),
        row(f"{title}, longest", ordered[-1], "s", calm_s, f"<= {fault.bar_s} s"),
    ]


def _measure(
    made: Town,
    fault: Fault,
    partitions: int,
    wanted: Sequence[str],
    gaps: dict[str, list[float]],
    calm: dict[str, float],
) -> None:
    """One fault of the node that leads most."""
    led = leaders(made, TOPIC)
    victim = max(made.nodes, key=lambda node: list(led.values()).count(node.node_id))
    mine = spread([number for number in range(partitions) if led.get(number) == victim.node_id])
    assert mine, "the node led nothing"
    users = _users(made, victim, mine, wanted)
    if not users:
        return
    for user in users.values():
        user.begin()
    pause = threading.Event()
    pause.wait(WARM_S + BEFORE_S)
    since = time.monotonic()
    heal = fault.begin(made, victim)
    pause.wait(fault.lasts_s)
    until = time.monotonic()
    pause.wait(ENDS_S)
    heal()
    pause.wait(AFTER_S)
    for user in users.values():
        user.end()
    notes = [each for name, user in users.items() for each in user.rows(name).items()]
    for name, noted in notes:
        for times in noted.times.values():
            before = [at for at in times if since - BEFORE_S < at < since]
            if len(before) > 1:  # a group also reads what was written earlier to partitions that nobody writes to now
                gaps.setdefault(name, []).append(longest_gap(times, since, until))
                print(f"  {name}: {gaps[name][-1]:.3f} s", flush=True)  # it is long until all is measured
                calm[name] = max(calm.get(name, 0.0), *(after - at for at, after in pairwise(before)), 0.0)
    wait_healed(made)


def spread(numbers: Sequence[int]) -> Sequence[int]:
    """Some of them, from all over the topic: librdkafka goes through its partitions in order, also through those that
    have nothing to send, and neighbours behind many of those are always served first."""
    return numbers[:: -(-len(numbers) // BEATEN_MAX) or 1]


def longest_gap(times: Sequence[float], since: float, until: float) -> float:
    """Between two answers, of which the later came after `since` and the earlier before `until`."""
    ends = [*sorted(times), max(until, *times)]  # who was never served again waits still
    return max((after - before for before, after in pairwise(ends) if after > since and before < until), default=0.0)


def _users(made: Town, victim: Node, mine: Sequence[int], wanted: Sequence[str]) -> dict[str, Noted]:
    servers = bootstrap(made)
    others = [node.url for node in made.nodes if node is not victim]
    java_log = victim.folder.parent / "java.log"
    makers: dict[str, Callable[[], Noted]] = {
        PUBLISHES: lambda: Librdkafka(servers, TOPIC, mine),
        OURS: lambda: OurProducer(servers, TOPIC, mine),
        HTTP: lambda: OverHttp(lambda: others, TOPIC, mine),
        GROUP: lambda: GroupMember(servers, TOPIC),
        TRANSACTIONS: lambda: Transactions(servers, TOPIC, mine),
        WORKER: lambda: OurWorker(servers, JOBS),
        SQS: lambda: Sqs([node.url for node in made.nodes]),
        JAVA_PRODUCER: lambda: Java(("producer",), servers, TOPIC, mine, java_log),
        JAVA_TRANSACTIONS: lambda: Java(("transactions",), servers, TOPIC, mine, java_log),
        JAVA_READERS: lambda: JavaReaders(servers, TOPIC, mine, java_log),
    }
    if not _has_java():
        wanted = [each for each in wanted if each not in JAVA]
    return {name: makers[name]() for name in wanted if not USERS or any(each in name for each in USERS)}


@cache
def _has_java() -> bool:
    try:
        java_jars()
    except NoJars as error:
        print(f"Kafka's Java clients are not measured: {error}")
        return False
    return True


def _make_facts(made: Town, count: int) -> None:
    """Committed offsets of many groups, which lie in the ledgers of all coordinators."""
    admin = AdminClient({"bootstrap.servers": bootstrap(made), "log_level": 0})
    places = [ck.TopicPartition(TOPIC, one, 0) for one in range(OFFSETS_AT_ONCE)]
    under_way: deque[Future[object]] = deque()
    for number in range(0, count, OFFSETS_AT_ONCE):
        wanted = ck.ConsumerGroupTopicPartitions(f"facts-{number}", places)
        under_way += admin.alter_consumer_group_offsets([wanted], request_timeout=COMMIT_S_MAX).values()
        if len(under_way) >= COMMITS_AT_ONCE:
            under_way.popleft().result()
    for commit in under_way:
        commit.result()

"""What is the matter with this node, if anything is: asked by probes, and exported."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from goqueue.broker.cluster_watch import ClusterWatch
from goqueue.broker.loop_watch import LoopWatch
from goqueue.broker.topics.topics import Topics
from goqueue.model.health import Check, Status
from goqueue.replica.replicas import Replicas
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.coordinators import AllCoordinators
from goqueue.runtime.life import Life

LATE_S_MAX = 2.0
"""A client that gives its requests so long was kept waiting in vain within the last half minute."""
NAMED_MAX = 5


def _check(name: str, is_passed: bool, message: str) -> Check:
    return Check(name, Status.PASS if is_passed else Status.FAIL, message)


class Health:
    def __init__(
        self,
        topics: Topics,
        replicas: Replicas,
        coordinators: AllCoordinators,
        loop_watch: LoopWatch,
        cluster: ClusterWatch,
    ) -> None:
        self._topics = topics
        self._replicas = replicas
        self._coordinators = coordinators
        self._loop_watch = loop_watch
        self.cluster = cluster
        self.is_stopping = False

    def failed_partitions(self) -> list[str]:
        topics = self._topics
        return [
            f"{topic.name}/{number}"
            for topic in topics.image.topics.values()
            for number in range(topic.partitions)
            if topics.has_failed(topic.name, number)
        ]

    def failed_coordinators(self) -> list[str]:
        failed = [each.name for each in self._coordinators if each.failure is not None]
        return failed + self._coordinators.unopened()

    def checks(self) -> list[Check]:
        return list(self._checks())

    def _checks(self, failed: list[str] | None = None) -> Iterator[Check]:
        failed = self.failed_partitions() if failed is None else failed
        yield self._broker()
        words = f"{len(failed)} partitions are out of service: {_some(failed)}"
        yield _check("storage", not failed, words if failed else "all partitions are in service")
        ledgers = self.failed_coordinators()
        words = f"{len(ledgers)} ledgers are out of service: {_some(ledgers)}"
        yield _check("ledgers", not ledgers, words if ledgers else "all ledgers are in service")
        unfinished = self._topics.unfinished
        words = f"{len(unfinished)} topics could not be made or removed, a restart tries again: {_some(unfinished)}"
        yield _check("topics", not unfinished, words if unfinished else "all topics are as they should be")
        yield self._damage()
        yield self._disk()
        late_s = self._loop_watch.worst_s
        words = f"requests waited up to {late_s:.1f} s for their turn in the last half minute"
        yield _check("event_loop", late_s < LATE_S_MAX, words)

    def _broker(self) -> Check:
        is_opening = self._topics.is_opening
        words = "stops" if self.is_stopping else "opens its partitions" if is_opening else "answers"
        return _check("broker", not self.is_stopping and not is_opening, words)

    def coordinator_lives(self) -> dict[Life, int]:
        """How many are active, are being loaded, have failed."""
        return self._coordinators.lives()

    def faults(self) -> dict[str, int]:
        """By coordinator: commands that met a fault of ours since the start."""
        return self._counted(lambda each: each.faults, self.cluster.metadata_faults)

    def _counted(self, of: Callable[[Coordinator[Any]], int], of_metadata: Callable[[], int] | None) -> dict[str, int]:
        found = self._coordinators.counted(of)
        return found if of_metadata is None else {**found, "metadata-0": of_metadata()}

    def loads(self) -> dict[str, int]:
        """By coordinator: how often it has read its ledger."""
        return self._coordinators.counted(lambda each: each.loads)

    def skipped_facts(self) -> dict[str, int]:
        """By coordinator: facts of its ledger that it could not read or apply when it was loaded last."""
        return self._counted(lambda each: each.skipped_facts, self.cluster.metadata_skipped)

    def skipped_facts_total(self) -> dict[str, int]:
        """The same of all loads."""
        return self._coordinators.counted(lambda each: each.skipped_facts_total)

    def damaged_logs(self) -> list[str]:
        """What was found since the start: rotten batches, and what should be there and is not."""
        found = []
        for replica in chain(self._replicas.ledgers, self._replicas):
            log = replica.log
            for first, last in log.report.missing[:NAMED_MAX]:
                found.append(f"offsets {first} to {last} of {replica.name} are missing")
            if log.damaged_batches:
                found.append(f"{replica.name} has {log.damaged_batches} damaged batches")
        found += [f"the files of {name} were gone, it was made anew" for name in self._replicas.made_anew]
        aside = self._replicas.directory.put_aside()
        return found + [f"{path} holds a log of another topic that had this name" for path in aside]

    def _damage(self) -> Check:
        logs = self.damaged_logs()
        facts = [f"{count} facts of {name} cannot be read" for name, count in self.skipped_facts().items() if count]
        if not logs and not facts:
            return Check("damage", Status.PASS, "no damage was found")
        words = [*logs[:NAMED_MAX], *facts[:NAMED_MAX]]
        more = len(logs) + len(facts) - len(words)
        return Check("damage", Status.WARN, "; ".join(words + ([f"and {more} more"] if more else [])))

    def disk_bytes(self) -> tuple[int, int]:
        """Of the disk with the data directory: all of it, and what is free. OSError: it cannot be told."""
        directory = self._replicas.directory
        return directory.total_bytes(), directory.free_bytes()

    def _disk(self) -> Check:
        reserve = self._replicas.disk_reserve_bytes
        try:
            refusal = self._replicas.directory.look_at_room(reserve)
            free = self._replicas.directory.free_bytes()
        except OSError as error:
            return _check("disk", False, f"its free space cannot be told: {error.strerror}")
        return _check("disk", not refusal, refusal or f"{free} bytes are free, and {reserve} must stay so")

    def is_ready(self, failed: list[str]) -> bool:
        """`failed`: the partitions that are."""
        return all(check.status is not Status.FAIL for check in self._checks(failed))


def _some(names: list[str]) -> str:
    return ", ".join(names[:NAMED_MAX])

"""Groups: who is in them, what they have committed or settled, and how far they are behind."""

from collections.abc import Iterator, Mapping

from goqueue.broker.metrics.of_topics import Names
from goqueue.broker.metrics.page import Page, is_other
from goqueue.broker.metrics.sources import Sources
from goqueue.machines.deliveries.commands import Measure, Place
from goqueue.model.lanes import Lane
from goqueue.telemetry.meters import JOIN, LEAVE, TIMEOUT, TRIGGERS, Meters

LANES = tuple(lane.name.lower() for lane in Lane)


PER_TURN = 100
"""Groups, or places of them, that are read before others get their turn."""


def read_groups(page: Page, sources: Sources, names: Names, *, has_partitions: bool) -> Iterator[None]:
    """In turns: whoever reads goes on when others had theirs."""
    meters = sources.meters
    found: set[str] = set()
    reached: dict[Place, int] = {}
    for number, (group, committed) in enumerate(sources.groups.measured(), 1):
        if number % PER_TURN == 0:
            yield
        found.add(group.group_id)
        label = names.group(group.group_id)
        page.add("goqueue_consumer_group_members", label, group.members)
        page.add("goqueue_consumer_group_state", (*label, group.state), 1)
        page.add("goqueue_consumer_group_joins_total", label, meters.members_moved.get((group.group_id, JOIN), 0))
        for reason in (LEAVE, TIMEOUT):
            left = meters.members_moved.get((group.group_id, reason), 0)
            page.add("goqueue_consumer_group_leaves_total", (*label, reason), left)
        for trigger in TRIGGERS:
            rebalances = meters.rebalances.get((group.group_id, trigger), 0)
            page.add("goqueue_consumer_rebalances_total", (*label, trigger), rebalances)
        if not is_other(label):  # of several it would say nothing
            page.add("goqueue_consumer_group_generation", label, group.generation)
        for (topic, partition), commit in committed.items():
            reached[Place(group.group_id, topic, partition)] = commit.offset
    for number, (place, measure) in enumerate(sources.queues.measured(), 1):
        if number % PER_TURN == 0:
            yield
        found.add(place.group_id)
        reached[place] = max(reached.get(place, 0), measure.start_offset)
        _read_place(page, names.pair(place.topic, place.group_id), measure, names)
    page.add("goqueue_consumer_groups", (), len(found))
    yield from _read_progress(page, sources, reached, names, has_partitions=has_partitions)
    meters.keep_groups(found)
    _read_meters(page, meters, names)


def _read_place(page: Page, label: tuple[str, ...], measure: Measure, names: Names) -> None:
    page.add("goqueue_broker_retries_pending", label, measure.waiting)
    page.add("goqueue_broker_fairness_keys", label, measure.senders)
    for lane, ready, leased, served in zip(LANES, measure.ready, measure.leased, measure.served, strict=True):
        with_lane = names.shares.label((*label, lane))
        page.add("goqueue_broker_lane_messages_ready", with_lane, ready)
        page.add("goqueue_broker_lane_messages_in_flight", with_lane, leased)
        page.add("goqueue_broker_lane_messages_served_total", with_lane, served)


def _read_progress(
    page: Page, sources: Sources, reached: Mapping[Place, int], names: Names, *, has_partitions: bool
) -> Iterator[None]:
    add = page.add_partition if has_partitions else page.add
    for number, (place, offset) in enumerate(reached.items(), 1):
        if number % PER_TURN == 0:
            yield
        replica = sources.topics.find_replica(place.topic, place.partition)
        if replica is None:
            continue
        label = names.pair(place.topic, place.group_id)
        if has_partitions:
            label = names.shares.label((place.topic, place.group_id, str(place.partition)))
        goes_on = max(offset, replica.start_offset)
        add("goqueue_consumer_committed_offset", label, goes_on)
        add("goqueue_consumer_lag_messages", label, max(0, replica.high_watermark - goes_on))


def _read_meters(page: Page, meters: Meters, names: Names) -> None:
    for (topic, group), count in meters.commits.items():
        page.add("goqueue_consumer_offset_commits_total", names.pair(topic, group), count)
    for (topic, group, kind), count in meters.commits_refused.items():
        page.add("goqueue_consumer_offset_commit_errors_total", (*names.pair(topic, group), kind), count)
    for group, histogram in meters.commits_s.items():
        page.observe("goqueue_consumer_offset_commit_latency_seconds", names.group(group), histogram)
    for group, polls in meters.polls.items():
        page.add("goqueue_consumer_polls_total", names.group(group), polls)
        page.add("goqueue_consumer_polls_empty_total", names.group(group), meters.polls_empty.get(group, 0))

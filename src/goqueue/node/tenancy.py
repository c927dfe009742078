"""Tenants of a node, with what their quotas are asked by: of groups before there is one, of members in their machines,
of messages before they wait."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec

from goqueue.broker.delays.schedules import Schedules
from goqueue.broker.groups.groups import Groups
from goqueue.broker.queues.queues import Queues
from goqueue.broker.tenants.belongings import TenantStore
from goqueue.broker.tenants.group_counts import GroupCounts
from goqueue.broker.tenants.tenants import Tenants
from goqueue.broker.topics.topics import Topics
from goqueue.machines.groups.commands import GroupOptions
from goqueue.machines.groups.consumer.facts import CONSUMER_GROUPS
from goqueue.machines.groups.consumer.kind import consumer_kind
from goqueue.machines.groups.machine import Groups as GroupsMachine
from goqueue.machines.groups.share.facts import ShareGroupOptions
from goqueue.machines.groups.share.kind import share_kind
from goqueue.runtime.clock import Clock
from goqueue.runtime.coordinators import AllCoordinators


class Services(NamedTuple):
    """That tenants have something in."""

    topics: Topics
    groups: Groups
    queues: Queues
    schedules: Schedules


def build_tenants(
    store: TenantStore,
    services: Services,
    coordinators: AllCoordinators,
    clock: Clock,
    is_mine: Callable[[], bool],
) -> tuple[Tenants, GroupCounts]:
    groups, queues = services.groups, services.queues
    counts = GroupCounts(lambda: store.access.tenants, (groups.page, queues.page_delivered))
    groups.may_begin = queues.may_begin = counts.may_begin
    tenants = Tenants(store, coordinators, clock, is_mine, services.topics.stored_bytes, counts)
    services.schedules.check_due = tenants.check_due
    return tenants, counts


def machines_of_groups(options: GroupOptions, members_max: Callable[[str], int | None]) -> Callable[[], GroupsMachine]:
    of_consumers = msgspec.structs.replace(CONSUMER_GROUPS, limit_of=members_max)
    kinds = (consumer_kind(of_consumers), share_kind(ShareGroupOptions(limit_of=members_max)))
    return partial(GroupsMachine, msgspec.structs.replace(options, limit_of=members_max), kinds=kinds)

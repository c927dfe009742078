"""What a tenant has, in the metadata and in the ledgers of all nodes: found by its names, and taken away."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

from goqueue.broker.shards import SHARDS
from goqueue.broker.tenants.walk import Walk
from goqueue.machines.accounts import DeleteKey, DeleteRules, DeleteUser
from goqueue.machines.controller_commands import DeleteTopic
from goqueue.machines.find_names import FindNames, FoundNames
from goqueue.machines.group_options import SetGroupOptions
from goqueue.machines.machine import Command
from goqueue.machines.name_table import NameTable
from goqueue.machines.quotas import DeleteQuota
from goqueue.model.accounts import AccessImage
from goqueue.model.errors import GoQueueError
from goqueue.model.tenancy import full
from goqueue.runtime.coordinators import AllCoordinators

LEDGERS = (("groups", SHARDS), ("transactions", SHARDS), ("schemas", 1))
WORDS = {"groups": "groups", "transactions": "transactional ids", "schemas": "subjects"}
SHOWN_MAX = 3
"""Names of a kind that are told."""

Found = dict[str, list[str]]
"""Plain names by what they are, a few of each; a kind of which there is none is not in it."""

R = TypeVar("R")


class TenantStore(Protocol):
    """The metadata of the cluster."""

    on_change: list[Callable[[], None]]

    @property
    def access(self) -> AccessImage: ...

    @property
    def schedules(self) -> Mapping[str, Any]: ...

    @property
    def group_options(self) -> NameTable[Mapping[str, str]]: ...

    @property
    def topic_sizes(self) -> Mapping[str, int]:
        """Partitions of every topic, also of those that are being made or deleted."""

    def submit(self, command: Command[R], on_reply: Callable[[R | GoQueueError], None]) -> None: ...


class Belongings:
    def __init__(self, store: TenantStore, coordinators: AllCoordinators) -> None:
        self._store = store
        self._coordinators = coordinators

    def find(self, tenant_id: str) -> Walk[Found]:
        """All that a tenant has, or would have if it were made now."""
        prefix = full(tenant_id, "")
        found = {
            what: [name.removeprefix(prefix) for name in names]
            for what, names in {**self._named(prefix), **self._accounts(tenant_id)}.items()
        }
        for kind, shards in LEDGERS:
            for shard in range(shards):
                reply: FoundNames = yield partial(self._ask, kind, shard, FindNames(prefix))
                found.setdefault(WORDS[kind], []).extend(name.removeprefix(prefix) for name in reply.names)
        return {what: sorted(set(names))[:SHOWN_MAX] for what, names in found.items() if names}

    def forget(self, tenant_id: str) -> Walk[bool]:
        """Take away all that is there. True: there was nothing. What takes longer, such as the logs of a topic or a
        transaction that waits for its markers, is found again by the next that asks."""
        prefix, is_empty = full(tenant_id, ""), True
        for command in self._commands(tenant_id, prefix):
            is_empty = False
            yield partial(self._store.submit, command)
        for kind, shards in LEDGERS:
            for shard in range(shards):
                after = ""
                while True:
                    reply: FoundNames = yield partial(self._ask, kind, shard, FindNames(prefix, after, forgets=True))
                    if not reply.names:
                        break
                    is_empty, after = False, reply.names[-1]
        return is_empty and not self.topics(tenant_id)

    def topics(self, tenant_id: str) -> dict[str, int]:
        """Full names, and how many partitions each has."""
        prefix = full(tenant_id, "")
        return {name: size for name, size in self._store.topic_sizes.items() if name.startswith(prefix)}

    def _commands(self, tenant_id: str, prefix: str) -> Iterator[Any]:
        """What is not there any more is refused by the controller, which is as good. Schedules go with their topics."""
        image, named = self._store.access, self._named(prefix)
        yield from (DeleteTopic(name) for name in named["topics"])
        yield from (SetGroupOptions(name, {}, replace_all=True) for name in named["options of groups"])
        yield from (DeleteUser(name) for name in image.users if name.startswith(prefix))
        yield from (DeleteKey(each.key_id) for each in image.keys.values() if each.tenant == tenant_id)
        yield from (DeleteRules((each.rule_id,)) for each in image.rules.values() if each.tenant == tenant_id)
        quotas = [each for each in image.quotas.values() if (each.user or "").startswith(prefix)]
        yield from (DeleteQuota(each.user, each.client_id) for each in quotas)

    def _named(self, prefix: str) -> dict[str, list[str]]:
        """Full names that the metadata has."""
        store = self._store
        return {
            "topics": [name for name in store.topic_sizes if name.startswith(prefix)],
            "options of groups": [name for name in store.group_options if name.startswith(prefix)],
            "schedules": [name for name in store.schedules if name.startswith(prefix)],
        }

    def _accounts(self, tenant_id: str) -> dict[str, list[str]]:
        image, prefix = self._store.access, full(tenant_id, "")
        return {
            "users": [name for name in image.users if name.startswith(prefix)],
            "keys": [each.name for each in image.keys.values() if each.tenant == tenant_id],
            "rules": [each.rule_id for each in image.rules.values() if each.tenant == tenant_id],
            "quotas": [each.user for each in image.quotas.values() if each.user and each.user.startswith(prefix)],
        }

    def _ask(
        self, kind: str, shard: int, command: FindNames, on_reply: Callable[[FoundNames | GoQueueError], None]
    ) -> None:
        coordinators = self._coordinators.of_kind(kind)
        if coordinators.find(shard) is None and coordinators.elsewhere is None:
            on_reply(FoundNames())  # nobody ever needed that shard
        else:
            coordinators.of(shard).submit(command, on_reply)

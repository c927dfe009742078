"""What the controller stores: topics, where recurring schedules live, and what a cluster has given out."""

from goqueue.machines.accounts import KeyStored, RuleStored, UserStored
from goqueue.machines.ended_sessions import SessionsEnded
from goqueue.machines.group_options import GroupOptionsStored
from goqueue.machines.machine import Fact
from goqueue.machines.quotas import QuotaStored
from goqueue.machines.tenants import TenantStored
from goqueue.model.secret import hides

SCHEDULE_KEY = b"\0schedule/"  # no topic can be called that


class TopicStored(Fact, frozen=True, tag="TopicStored"):
    name: str
    topic_id: bytes
    partitions: int
    overrides: dict[str, str]
    is_deleting: bool = False

    def key(self) -> bytes:
        return self.name.encode()


class TopicForgotten(Fact, frozen=True):
    is_tombstone = True
    name: str

    def key(self) -> bytes:
        return self.name.encode()


@hides("secret")
class ClusterNamed(Fact, frozen=True, tag="ClusterNamed"):
    cluster_id: str
    secret: bytes = b""

    def key(self) -> bytes:
        return b"\0cluster"  # no topic can be called that


class ProducerIdsTaken(Fact, frozen=True, tag="ProducerIdsTaken"):
    """Ids below `end` may be in use. One fact for a block: whoever has it and goes away leaves the rest unused."""

    end: int

    def key(self) -> bytes:
        return b"\0producer-ids"


class SchedulePlaced(Fact, frozen=True, tag="SchedulePlaced"):
    name: str
    topic_id: bytes
    partition: int

    def key(self) -> bytes:
        return SCHEDULE_KEY + self.name.encode()


class ScheduleForgotten(Fact, frozen=True):
    is_tombstone = True
    name: str

    def key(self) -> bytes:
        return SCHEDULE_KEY + self.name.encode()


STORED_FACTS: tuple[type[Fact], ...] = (
    TopicStored,
    ClusterNamed,
    ProducerIdsTaken,
    SchedulePlaced,
    GroupOptionsStored,
    UserStored,
    KeyStored,
    RuleStored,
    QuotaStored,
    TenantStored,
    SessionsEnded,
)

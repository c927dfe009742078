"""The broker as one operation of one client may use it: the same attributes, each a port that checks what passes."""

import base64
import hmac
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from goqueue.broker.accounts.quotas import Allowance
from goqueue.broker.broker import Broker
from goqueue.broker.durable import Durable, OnConfirmed
from goqueue.broker.health import Health
from goqueue.broker.queues.consumer_leases import ConsumerLeases
from goqueue.broker.queues.settle import OnSettled, Wanted
from goqueue.broker.reading.fetch import Fetcher
from goqueue.broker.reading.fetch_session import FetchSession, OnAnswer
from goqueue.broker.reading.wants import Limits, Want
from goqueue.broker.topics.topics import Topics
from goqueue.broker.view.accounts import AccountsPort
from goqueue.broker.view.audit import AuditPort
from goqueue.broker.view.deputies import GroupsPort, LagPort, LeasesPort, MetricsPort, MovesPort, RecurringPort
from goqueue.broker.view.mutations import MutationsPort
from goqueue.broker.view.ports import Port, not_for_tenants
from goqueue.broker.view.receiving import ReceiverPort
from goqueue.broker.view.rules import OF_NODE, RULES
from goqueue.broker.view.scope import Scope
from goqueue.broker.view.shown import said_otherwise, shown, shown_topic
from goqueue.broker.view.tracing import TracingPort
from goqueue.broker.view.transactions import TransactionListPort, TransactionStepsPort
from goqueue.model.access import Kind, Operation, Rights
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.ledgers import LedgerKind
from goqueue.model.refusal import Refused
from goqueue.model.registry_words import schema_not_found
from goqueue.model.schemas import RegistryCode, RegistryRefused
from goqueue.model.topics import Image, Topic

NOT_NOW = "a part of this node is out of service at the moment: ask again"


class View(Broker):
    """To whoever holds one it is a broker. Its services are made when they are first asked for."""

    def __init__(self, broker: Broker, scope: Scope) -> None:
        made: dict[str, Any] = self.__dict__
        made["_broker"] = broker
        made["_scope"] = scope
        for name in OF_NODE:
            made[name] = getattr(broker, name)
        if not scope.tenancy.is_default:
            made["health"], made["settings"] = TenantHealth(broker.health, scope), ()
            made["identity"] = replace(broker.identity, cluster_id=cluster_id_of(broker, scope.tenancy.tenant))
            made["durable"] = TenantDurable(broker.durable)
        made["topics"] = TopicsPort(broker.topics, RULES["topics"], scope)
        is_open = scope.is_open_to(Kind.TOPIC)
        made["fetcher"] = broker.fetcher if is_open else FetcherPort(broker.fetcher, broker.topics, scope)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in RULES:
            raise AttributeError(f"{name} is not for those outside")
        port = PORTS.get(name, Port)
        made = self.__dict__[name] = port(getattr(self._broker, name), RULES[name], self._scope)
        return made

    def charged(
        self, allowance: Allowance | None, on_delay: Callable[[int], object] | None = None, *, is_strict: bool = True
    ) -> "View":
        """The same, for one request of a client whose partitions are counted as it makes and deletes them."""
        if allowance is None or not allowance.limits_mutations:
            return self
        view = object.__new__(View)
        view.__dict__.update(self.__dict__)
        view.__dict__["topics"] = MutationsPort(self.topics, allowance, on_delay, is_strict=is_strict)
        return view

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    @property
    def journeys(self) -> Any:
        return self.tracing.journeys

    @property
    def audit(self) -> Any:
        audit = self._broker.audit
        return None if audit is None else AuditPort(audit, self._scope)

    @property
    def leases(self) -> Any:
        return LeasesPort(self._broker.leases, RULES["leases"], self._scope)

    @property
    def transaction_list(self) -> Any:
        return TransactionListPort(self._broker.transaction_list, RULES["transaction_list"], self._scope)

    def admit(self, kind: Kind, name: str, operation: Operation | None = None) -> str:
        """For what an operation does with a name before, or without, asking the broker."""
        scope: Scope = self._scope
        return scope.admit(kind, name, operation)

    def seen(self, kind: Kind, name: str) -> str | None:
        """A name that is kept, as this client knows it. None: it may not see it."""
        scope: Scope = self._scope
        return scope.tenancy.plain(name) if scope.shows(kind, name) else None

    @property
    def alike(self) -> Hashable:
        """Whoever has the same is shown the same by this operation."""
        scope: Scope = self._scope
        return scope.alike

    def check_active(self) -> None:
        """Raises if the tenant is suspended."""
        scope: Scope = self._scope
        scope.check_active()

    def sees_total(self, kind: Kind) -> bool:
        """Whether this client may be told of all names of a kind together. Nobody asked for it: it is not noted."""
        scope: Scope = self._scope
        return scope.shows_total(kind)

    def kept(self, name: str) -> str:
        """A name as it is kept: for whoever looks for its home."""
        scope: Scope = self._scope
        return scope.tenancy.full(name)

    def plain(self, name: str) -> str:
        """A name that is kept and stands in what the broker wrote into a record, as this client knows it."""
        scope: Scope = self._scope
        return name.removeprefix(scope.tenancy.prefix)

    def leases_of(self, group_id: str, consumer: str) -> ConsumerLeases:
        """With names as they are kept, and past all rights: what a consumer holds is given back when it is gone, also
        if that is because it may do nothing any more."""
        return ConsumerLeases(self._broker.queues, self.admit(Kind.GROUP, group_id), consumer)

    def words(self, text: str) -> str:
        """What the broker says and keeps for later, with the names that this client knows."""
        scope: Scope = self._scope
        return text.replace(scope.tenancy.prefix, "")

    def may_describe(self, topic: str) -> bool:
        """Whether this client may be told that something reads this topic, as it knows its name."""
        return bool(self.allowed(Kind.TOPIC, topic, (Operation.DESCRIBE,)))

    def hides(self, topic_id: bytes) -> bool:
        """There is a topic with this id, and this client may not see it."""
        found, scope = self._broker.topics.image.by_id(topic_id), self._scope
        return found is not None and not scope.shows(Kind.TOPIC, found.name)

    def allowed(self, kind: Kind, name: str, operations: Iterable[Operation]) -> list[Operation]:
        """Those of them that this client may do with a name that it was shown, also by other requests than this."""
        rights: Rights = self._scope.rights
        return [each for each in operations if rights.allows(kind, each, name)]


def cluster_id_of(broker: Broker, tenant: str) -> str:
    """Clients of two tenants must not take their clusters for one."""
    told = hmac.digest(broker.identity.cluster_id.encode(), tenant.encode(), "sha256")
    return base64.urlsafe_b64encode(told[:16]).decode().rstrip("=")


class TenantHealth:
    """Of the node a tenant learns what it needs to find its partitions."""

    def __init__(self, health: Health, scope: Scope) -> None:
        self._scope = scope
        self.is_suspected = health.cluster.is_suspected
        self.refusing_of_late = health.cluster.refusing_of_late
        self.known_nodes = health.cluster.known_nodes
        self.checks = health.checks
        """Told as pass or fail: what is wrong names topics of all."""

    @property
    def cluster(self) -> "TenantHealth":
        return self

    def __getattr__(self, name: str) -> Any:
        raise not_for_tenants(self._scope)


class TenantDurable:
    """States are kept of all tenants together: a tenant is told that one cannot be had, and not which. The name of one
    has that of a topic, which may be another tenant's."""

    def __init__(self, durable: Durable) -> None:
        self._durable = durable

    def confirm(self, kinds: Iterable[LedgerKind], on_confirmed: OnConfirmed) -> None:
        def confirmed(error: GoQueueError | None) -> None:
            on_confirmed(None if error is None else said_otherwise(error, NOT_NOW))

        self._durable.confirm(kinds, confirmed)


class TopicsPort(Port):
    def __init__(self, service: Any, rules: Any, scope: Scope) -> None:
        super().__init__(service, rules, scope)
        self._is_open = scope.is_open_to(Kind.TOPIC)
        self._seen: tuple[Image, Image] | None = None

    @property
    def image(self) -> Image:
        """Names that may not be touched are in no list, and asking for one is refused."""
        image: Image = self._service.image
        if self._is_open:
            return image
        if self._seen is None or self._seen[0] is not image:
            self._seen = (image, ScopedImage(image, self._scope))
        return self._seen[1]


class SettlerPort(Port):
    """A receipt says itself what it is for, so it is looked at first: whoever has come by one needs the right, too."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if name not in ("settle", "settle_one") or all(map(self._scope.is_open_to, (Kind.TOPIC, Kind.GROUP))):
            return found
        made = self.__dict__[name] = self._settling(found) if name == "settle" else self._settling_one(found)
        return made

    def _settling(self, settle: Callable[..., Any]) -> Callable[..., Any]:
        def call(wanted: Sequence[Wanted], on_settled: OnSettled) -> None:
            checked = [self._admitted(each) for each in wanted]
            passed = [each for each in checked if isinstance(each, Wanted)]

            def answer(verdicts: list[Any]) -> None:
                rest = iter(verdicts)
                on_settled([next(rest) if isinstance(each, Wanted) else each for each in checked])

            if passed:
                settle(passed, answer)
            else:
                answer([])

        return call

    def _settling_one(self, settle: Callable[..., Any]) -> Callable[..., Any]:
        def call(wanted: Wanted, now_ms: int, on_settled: Callable[[Any], None]) -> None:
            checked = self._admitted(wanted)
            if isinstance(checked, Wanted):
                settle(checked, now_ms, on_settled)
            else:
                on_settled(checked)

        return call

    def _admitted(self, wanted: Wanted) -> Wanted | GoQueueError:
        """A receipt of another tenant is none, to whoever shows it."""
        scope = self._scope
        try:
            place = self._service.place_of(wanted.receipt)
        except GoQueueError:
            return wanted  # and is refused for that
        if not scope.tenancy.is_all and not scope.tenancy.owns(place.topic):
            return wanted._replace(receipt="")
        try:
            scope.admit_kept(Kind.TOPIC, place.topic)
            scope.admit_kept(Kind.GROUP, place.group_id)
        except GoQueueError as error:
            return error.kept()
        return wanted


class SchemasPort(Port):
    """Numbers of schemas are counted for all subjects of all tenants together. Whoever may read one that has a schema
    may read that by its number; to all others there is none."""

    def __getattr__(self, name: str) -> Any:
        found = {"parsed": self._parsed, "schema": self._schema, "uses": self._uses}.get(name)
        if name == "register" and not self._scope.tenancy.is_default:
            made = self.__dict__[name] = self._registering(super().__getattr__(name))
            return made
        if found is None or self._scope.is_open_to(Kind.SUBJECT):
            return super().__getattr__(name)
        self._scope.shows(Kind.SUBJECT, "")
        made = self.__dict__[name] = found
        return made

    def _uses(self, schema_id: int, with_deleted: bool = False) -> Any:
        found = self._service.uses(schema_id, with_deleted)
        return shown(self._scope.tenancy, [each for each in found if self._scope.shows(Kind.SUBJECT, each.subject)])

    def _schema(self, schema_id: int) -> Any:
        if not self._uses(schema_id, with_deleted=True):
            raise RegistryRefused(RegistryCode.SCHEMA_NOT_FOUND, schema_not_found(schema_id))
        return shown(self._scope.tenancy, self._service.schema(schema_id))

    def _registering(self, register: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, place: tuple[int, int] = (0, 0), **kwargs: Any) -> Any:
            if place[0]:  # it would take that number from all, and those below it
                raise RegistryRefused(RegistryCode.OPERATION_NOT_PERMITTED, "a tenant does not choose ids of schemas")
            return register(*args, place=place, **kwargs)

        return call

    def _parsed(self, schema_id: int) -> Any:
        self._schema(schema_id)
        return self._service.parsed(schema_id)


class FetcherPort:
    """What may not be read is refused by itself: a consumer reads many topics with one request. A fetch that has waited
    is looked at again: the right may have been taken away."""

    def __init__(self, fetcher: Fetcher, topics: Topics, scope: Scope) -> None:
        self._fetcher = fetcher
        self._topics = topics
        self._scope = scope

    def session(self) -> FetchSession:
        return self._fetcher.session(self)

    def fetch(self, wants: Sequence[Want], limits: Limits, on_answer: OnAnswer) -> FetchSession | None:
        return self._fetcher.fetch(wants, limits, on_answer, self)

    @property
    def rights(self) -> object:
        return self._scope.rights

    def kept_name(self, want: Want) -> str:
        """Who may not touch a topic does not learn what its id stands for."""
        scope = self._scope
        if not want.topic_id:
            return scope.admit(Kind.TOPIC, want.topic)
        topic = self._topics.image.by_id(want.topic_id)
        if topic is None or not scope.shows(Kind.TOPIC, topic.name):
            raise Refused(Code.UNKNOWN_TOPIC_ID)
        return topic.name


PORTS: Mapping[str, type[Port]] = {
    "settler": SettlerPort,
    "receiver": ReceiverPort,
    "schemas": SchemasPort,
    "accounts": AccountsPort,
    "moves": MovesPort,
    "recurring": RecurringPort,
    "groups": GroupsPort,
    "lag": LagPort,
    "metrics": MetricsPort,
    "tracing": TracingPort,
    "transaction_steps": TransactionStepsPort,
}
"""Services that need more than their names mapped."""


class ScopedImage(Image):
    def __init__(self, image: Image, scope: Scope) -> None:
        topics = ScopedTopics(image.topics, scope)
        super().__init__(image.revision, topics, image.nodes, image.ledgers)
        self.__dict__["_scoped"] = topics
        self.__dict__["_whole"] = image
        self.__dict__["_scope"] = scope

    def by_id(self, topic_id: bytes) -> Topic | None:
        """Who may not touch a topic does not learn what its id stands for."""
        found: Topic | None = self.__dict__["_whole"].by_id(topic_id)
        scope: Scope = self.__dict__["_scope"]
        topics: ScopedTopics = self.__dict__["_scoped"]
        return topics.shown(found) if found is not None and scope.shows(Kind.TOPIC, found.name) else None


class ScopedTopics(Mapping[str, Topic]):
    def __init__(self, topics: Mapping[str, Topic], scope: Scope) -> None:
        self._topics = topics
        self._scope = scope
        self._shown: dict[bytes, Topic] = {}
        """Topics of a tenant as it knows them."""

    def __getitem__(self, name: str) -> Topic:
        return self.shown(self._topics[self._scope.admit(Kind.TOPIC, name)])

    def shown(self, topic: Topic) -> Topic:
        tenancy = self._scope.tenancy
        if tenancy.is_default:
            return topic
        found = self._shown.get(topic.id)
        if found is None:
            found = self._shown[topic.id] = shown_topic(tenancy, topic)
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._scope.admit(Kind.TOPIC, name) in self._topics

    def __iter__(self) -> Iterator[str]:
        plain = self._scope.tenancy.plain
        return (plain(name) for name in self._topics if self._scope.shows(Kind.TOPIC, name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

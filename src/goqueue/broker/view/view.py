"""The broker as one operation of one client may use it: the same attributes, each a port that checks what passes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from goqueue.broker.broker import Broker
from goqueue.broker.reading.fetch import Fetcher, Got, Limits, Want
from goqueue.broker.view.ports import Port
from goqueue.broker.view.rules import OF_NODE, RULES
from goqueue.broker.view.scope import Scope
from goqueue.model.access import Kind, Operation, Rights
from goqueue.model.refusal import Refused
from goqueue.model.topics import Image, Topic


class View(Broker):
    """To whoever holds one it is a broker. Its services are made when they are first asked for."""

    def __init__(self, broker: Broker, scope: Scope) -> None:
        made: dict[str, Any] = self.__dict__
        made["_broker"] = broker
        made["_scope"] = scope
        for name in OF_NODE:
            made[name] = getattr(broker, name)
        made["topics"] = TopicsPort(broker.topics, RULES["topics"], scope)
        if not scope.is_open_to(Kind.TOPIC):
            made["fetcher"] = FetcherPort(broker.fetcher, scope)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in RULES:
            raise AttributeError(f"{name} is not for those outside")
        made = self.__dict__[name] = Port(getattr(self._broker, name), RULES[name], self._scope)
        return made

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    @property
    def journeys(self) -> Any:
        return self.tracing.journeys

    @property
    def transaction_list(self) -> Any:
        return Port(self._broker.transaction_list, RULES["transaction_list"], self._scope)

    def admit(self, kind: Kind, name: str, operation: Operation | None = None) -> str:
        """For what an operation does with a name before, or without, asking the broker."""
        scope: Scope = self._scope
        return scope.admit(kind, name, operation)

    def renew(self, rights: Rights) -> None:
        """They were changed."""
        self._scope.rights = rights

    def allowed(self, kind: Kind, name: str, operations: Iterable[Operation]) -> list[Operation]:
        """Those of them that this client may do with a name that it was shown, also by other requests than this."""
        rights: Rights = self._scope.rights
        return [each for each in operations if rights.allows(kind, each, name)]


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


class FetcherPort:
    """What may not be read is refused by itself: a consumer reads many topics with one request. A fetch that has waited
    is looked at again: the right may have been taken away."""

    def __init__(self, fetcher: Fetcher, scope: Scope) -> None:
        self._fetcher = fetcher
        self._scope = scope

    def fetch(self, wants: Sequence[Want], limits: Limits, on_got: Callable[[list[Got]], None]) -> Any:
        rights, refused = self._scope.rights, self._refused(wants)
        admitted = [want for number, want in enumerate(wants) if number not in refused]
        if refused:  # told at once, whatever there is to wait for
            limits = limits._replace(max_wait_ms=0)

        def answer(got: list[Got]) -> None:
            rest = iter(got)
            found = [refused.get(number) or next(rest) for number in range(len(wants))]
            if self._scope.rights is not rights:
                for number, refusal in self._refused(wants).items():
                    found[number] = refusal
            on_got(found)

        return self._fetcher.fetch(admitted, limits, answer)

    def _refused(self, wants: Sequence[Want]) -> dict[int, Got]:
        refused: dict[int, Got] = {}
        for number, want in enumerate(wants):
            try:
                self._scope.admit(Kind.TOPIC, want.topic)
            except Refused as error:
                refused[number] = Got(error.code)
        return refused


class ScopedImage(Image):
    def __init__(self, image: Image, scope: Scope) -> None:
        super().__init__(image.revision, ScopedTopics(image.topics, scope), image.nodes, image.ledgers)
        self.__dict__["_whole"] = image
        self.__dict__["_scope"] = scope

    def by_id(self, topic_id: bytes) -> Topic | None:
        """Who may not touch a topic does not learn what its id stands for."""
        found: Topic | None = self.__dict__["_whole"].by_id(topic_id)
        scope: Scope = self.__dict__["_scope"]
        return found if found is not None and scope.shows(Kind.TOPIC, found.name) else None


class ScopedTopics(Mapping[str, Topic]):
    def __init__(self, topics: Mapping[str, Topic], scope: Scope) -> None:
        self._topics = topics
        self._scope = scope

    def __getitem__(self, name: str) -> Topic:
        return self._topics[self._scope.admit(Kind.TOPIC, name)]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._scope.admit(Kind.TOPIC, name) in self._topics

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._topics if self._scope.shows(Kind.TOPIC, name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

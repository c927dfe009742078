"""Services that touch, on behalf of whoever asks, names that the request does not say: each needs the asker's right."""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from goqueue.broker.view.ports import Port, held_of, place_of
from goqueue.machines.groups.commands import FetchOffsets, FetchOffsetsReply
from goqueue.model.access import Kind, Operation
from goqueue.model.codes import Code
from goqueue.model.lag import GroupLag
from goqueue.model.recurring import Recurring
from goqueue.model.refusal import Refused


class MovesPort(Port):
    """A move reads one topic and writes to another: that which is named, or all those that its records may be from."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if name == "start":  # instead of what was made above, also the next time
            found = self.__dict__[name] = self._starting(found)
        return found

    def _starting(self, start: Callable[..., Any]) -> Callable[..., Any]:
        def call(group_id: str, source: str, to: str | None, *args: Any, **kwargs: Any) -> Any:
            tenancy = self._scope.tenancy
            origins = [tenancy.plain(each) for each in self._service.origins(tenancy.full(source))]
            for each in origins if to is None else [to]:
                self._scope.admit(Kind.TOPIC, each, Operation.WRITE)
            return start(group_id, source, to, *args, **kwargs)

        return call


class RecurringPort(Port):
    """A schedule is replaced, paused and dropped by its name: that of a topic which may not be written to stays."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if name == "store":
            found = self.__dict__[name] = self._storing(found)
        elif name in ("drop", "pause"):
            found = self.__dict__[name] = self._changing(found)
        return found

    def _changing(self, change: Callable[..., Any]) -> Callable[..., Any]:
        def call(name: str, *args: Any, **kwargs: Any) -> Any:
            topic = self._service.topic_of(self._scope.renamed(name))
            if topic is None:  # nobody can say whose it is
                self._scope.admit_total(Kind.TOPIC)
            else:
                self._scope.admit_kept(Kind.TOPIC, topic)
            return change(name, *args, **kwargs)

        return call

    def _storing(self, store: Callable[..., Any]) -> Callable[..., Any]:
        def call(wanted: Recurring, on_reply: Callable[[Any], None]) -> Any:
            scope = self._scope
            scope.admit(Kind.TOPIC, wanted.topic)  # else whoever may do nothing learns which schedules there are
            before = self._service.topic_of(scope.renamed(wanted.name))
            if before is not None and not scope.shows(Kind.TOPIC, before):
                words = f"there is a schedule {wanted.name!r} already, of a topic that may not be written to"
                raise Refused(Code.TOPIC_AUTHORIZATION_FAILED, words)
            return store(wanted, on_reply)

        return call


class MetricsPort(Port):
    """A tenant is told of its own topics and groups, and of nothing else of the node."""

    def __getattr__(self, name: str) -> Any:
        scope = self._scope
        if name not in ("exposing", "others") or scope.tenancy.is_default:
            return super().__getattr__(name)
        scope.admit_total(Kind.CLUSTER)
        return partial(getattr(self._service, f"{name}_of"), scope.tenancy.tenant)


class LeasesPort(Port):
    """A receipt says itself what it is for: whoever has come by one needs the right, too. Who may see all groups may
    not see all topics, so a list of leases is left without those of others."""

    def __getattr__(self, name: str) -> Any:
        found, scope = super().__getattr__(name), self._scope
        if name == "held" and scope.tenancy.is_default and not scope.is_open_to(Kind.TOPIC):  # of others it is so
            made = self.__dict__[name] = lambda group_id, topic: held_of(scope, found(group_id, topic))
            return made
        if name not in ("extend", "finish") or all(map(self._scope.is_open_to, (Kind.TOPIC, Kind.GROUP))):
            return found

        def call(receipt: str, *args: Any) -> None:
            place_of(self._scope, self._service.lease_of(receipt))
            found(receipt, *args)

        self.__dict__[name] = call
        return call


class _OfReaders(Port):
    """Of topics that may not be described nothing is told, though a group reads them."""

    def _hearing(self, on_reply: Callable[[Any], None]) -> Callable[[Any], None]:
        return on_reply if self._scope.is_open_to(Kind.TOPIC) else lambda told: on_reply(self._shown(told))

    def _shown(self, told: Any) -> Any:
        if isinstance(told, list):
            return [self._shown(each) for each in told]
        if isinstance(told, GroupLag):
            return told._replace(partitions=self._seen(told.partitions))
        if isinstance(told, FetchOffsetsReply):
            return msgspec.structs.replace(told, offsets=self._seen(told.offsets))
        return told

    def _seen(self, several: Any) -> tuple[Any, ...]:
        scope = self._scope
        return tuple(each for each in several if scope.shows(Kind.TOPIC, scope.tenancy.full(each.topic)))


class LagPort(_OfReaders):
    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if name not in ("of_group", "of_some"):
            return found
        made = self.__dict__[name] = lambda asked, on_reply: found(asked, self._hearing(on_reply))
        return made


class GroupsPort(_OfReaders):
    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if name not in ("ask", "submit") or self._scope.is_open_to(Kind.TOPIC):
            return found
        made = self.__dict__[name] = self._asking(found)
        return made

    def _asking(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def call(command: Any, on_reply: Callable[[Any], None]) -> Any:
            is_of_all = isinstance(command, FetchOffsets) and command.partitions is None
            return ask(command, self._hearing(on_reply) if is_of_all else on_reply)

        return call

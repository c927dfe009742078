"""Journeys of messages, which are kept of all tenants together, as one tenant may see them."""

from typing import Any

from goqueue.broker.view.ports import Keep, Port, Rules, not_for_tenants
from goqueue.broker.view.scope import Scope
from goqueue.model.access import Kind
from goqueue.telemetry.journeys import Journeys, Note


def _of_own_topics(scope: Scope, found: Any) -> Any:
    return [each for each in found if scope.tenancy.owns(each.topic)]


def _journeys_of_own_topics(scope: Scope, found: Any) -> Any:
    """A producer may bring a trace along that another tenant's has brought, too."""
    return [each for each in found if scope.tenancy.owns(each.spot.topic)]


_LISTS: dict[str, Keep] = {"spots": _of_own_topics, "of_trace": _journeys_of_own_topics}
_SPANS = frozenset({"delivery_span", "parent", "publish_span", "step_span"})
PARTS = {
    "identities": Rules(tenants=_SPANS, free=_SPANS, words={"step_span": {"note": "given"}}),
    "journal": Rules(tenants=frozenset({"catch_up"}), free=frozenset({"catch_up"})),
    "traces": Rules(
        tenants=frozenset({"of_trace", "page", "search", "spots"}),
        free=frozenset({"of_trace", "page", "search", "spots"}),
        lists=_LISTS,
    ),
}
TOTALS = frozenset({"journal", "traces"})
"""Parts that tell of all topics together."""


class TracingPort(Port):
    def __getattr__(self, name: str) -> Any:
        scope = self._scope
        if scope.tenancy.is_default or name not in (*PARTS, "journeys"):
            return super().__getattr__(name)
        if name == "journeys":
            return OwnJourneys(self._service.journeys, scope)
        if name in TOTALS:
            scope.admit_total(Kind.TOPIC)
        made = self.__dict__[name] = Port(getattr(self._service, name), PARTS[name], scope)
        return made


class OwnJourneys:
    """Counts are of all tenants, and not told."""

    def __init__(self, journeys: Journeys, scope: Scope) -> None:
        scope.admit_total(Kind.TOPIC)
        self._journeys = journeys
        self._scope = scope

    def kept(self) -> list[Note]:
        """As they are kept: there are many, and what is found among them is shown with plain names."""
        prefix = self._scope.tenancy.prefix
        return [note for note in self._journeys.kept() if note.topic.startswith(prefix)]

    def __getattr__(self, name: str) -> Any:
        raise not_for_tenants(self._scope)

"""A service of the broker as one operation may use it. A method whose parameters name something is checked by their
words; all others stand in a table, with what they tell. What stands nowhere cannot be reached.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import lru_cache
from inspect import getattr_static, signature
from typing import Any, NamedTuple

from goqueue.broker.view.names import WORDS, Visit, visitor
from goqueue.broker.view.scope import Mentioning, Scope
from goqueue.broker.view.shown import shown, shown_error
from goqueue.model.access import Kind
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError, MalformedReceipt
from goqueue.model.refusal import Refused
from goqueue.model.tenancy import Tenancy

TOPIC, GROUP, TRANSACTIONAL_ID, SUBJECT = Kind.TOPIC, Kind.GROUP, Kind.TRANSACTIONAL_ID, Kind.SUBJECT
CLUSTER = Kind.CLUSTER
ON_REPLY = "on_reply"
"""Where a refusal is told like any other; methods without one raise it."""

Keep = Callable[[Scope, Any], Any]
"""What of a result is shown."""


class Rules(NamedTuple):
    """Of one service."""

    free: frozenset[str] = frozenset()
    """Methods and attributes that tell nothing of a name."""
    whole: Mapping[str, Kind] = {}
    """Methods that tell something of all names of a kind together, or of one that is known by a number."""
    lists: Mapping[str, Keep] = {}
    """Methods whose result is left without what may not be seen."""
    pages: Mapping[str, Kind] = {}
    """Methods that give so many names behind one."""
    parts: Mapping[str, "Rules"] = {}
    """Attributes that are services too."""
    words: Mapping[str, Mapping[str, str]] = {}
    """By method: parameters, and the words that would have said what they are."""
    claims: Mapping[str, tuple[Kind, ...]] = {}
    """Of hot methods: what kinds their arguments name, so that nobody looks where all are allowed."""
    tenants: frozenset[str] = frozenset()
    """What all tenants may use: names in it are mapped on both ways. All else is the default tenant's."""


class Port:
    """Methods are made when they are first used. Where nothing needs to be asked they are the service's own."""

    def __init__(self, service: Any, rules: Rules, scope: Scope) -> None:
        self._service = service
        self._rules = rules
        self._scope = scope

    def __getattr__(self, name: str) -> Any:
        rules = self._rules
        if not self._scope.tenancy.is_default:
            made = self.__dict__[name] = self._of_tenant(name)
            return made
        if name in rules.free:
            return self._free(name)
        if name in rules.parts:
            made = Port(getattr(self._service, name), rules.parts[name], self._scope)
        elif name in rules.whole:
            self._scope.admit_total(rules.whole[name])
            return self._free(name)
        elif name in rules.pages:
            made = _paged(self._scope, rules.pages[name], getattr(self._service, name))
        elif name in rules.lists:
            made = self._list(name, rules.lists[name])
        else:
            made = self._scoped(name)
        self.__dict__[name] = made
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A service that is one method."""
        method = self._checked("", self._service) if self._scope.tenancy.is_default else self._of_tenant("")
        return method(*args, **kwargs)

    def _of_tenant(self, name: str) -> Any:
        """Names are mapped on both ways. What is free of names is the same for all; of what is told of all names of a
        kind it is told its own."""
        rules, scope = self._rules, self._scope
        found = getattr(self._service, name) if name else self._service
        if name in rules.parts:
            return Port(found, rules.parts[name], scope)
        if name not in rules.tenants:
            raise not_for_tenants(scope)
        if name in rules.whole:
            scope.admit_total(rules.whole[name])
        if name in rules.pages:
            return _paged(scope, rules.pages[name], found)
        if not callable(found):
            return found
        named = self._named(name, found)
        keep = rules.lists.get(name)
        return _for_tenant(scope, found, named, keep, is_free=name in rules.free)

    def _free(self, name: str) -> Any:
        found = getattr(self._service, name)
        if is_kept(self._service.__class__, name) and not isinstance(found, int | float):  # counts go on
            self.__dict__[name] = found
        return found

    def _list(self, name: str, keep: Keep) -> Any:
        scope, found = self._scope, getattr(self._service, name)

        def listed(*args: Any, **kwargs: Any) -> Any:
            return keep(scope, found(*args, **kwargs))

        return listed

    def _scoped(self, name: str) -> Any:
        return self._checked(name, getattr(self._service, name))

    def _named(self, name: str, method: Any) -> "Named":
        words = tuple(self._rules.words.get(name, {}).items())
        is_wide = not self._scope.tenancy.is_all
        return named_parameters(getattr(method, "__func__", method), words, is_wide=is_wide)

    def _checked(self, name: str, method: Any) -> Any:
        named = self._named(name, method) if callable(method) else None
        if named is None or not any(named.visits):
            raise AttributeError(
                f"goqueue.broker.view.rules does not say what {type(self._service).__name__}.{name} tells, and of whom"
            )
        scope = self._scope
        kinds = self._rules.claims.get(name, named.kinds)
        if kinds and all(scope.is_open_to(kind) for kind in kinds):
            return method
        return _checked(scope, method, named)


def not_for_tenants(scope: Scope) -> Refused:
    """What does not tell tenants apart yet is closed to all but one of them."""
    words = f"this operation is not open to the tenant {scope.tenancy.tenant!r}"
    return Refused(Code.CLUSTER_AUTHORIZATION_FAILED, words)


class Named(NamedTuple):
    """What a method's parameters name."""

    names: tuple[str, ...]
    visits: tuple[Visit | None, ...]
    kinds: tuple[Kind, ...] | None
    """None: it depends on what is passed."""


@lru_cache(maxsize=1000)
def named_parameters(
    function: Callable[..., Any], words: tuple[tuple[str, str], ...] = (), *, is_wide: bool = False
) -> Named:
    others = dict(words)
    names = tuple(name for name in signature(function).parameters if name != "self")
    said = [others.get(name, name) for name in names]
    visits = tuple(visitor(word, is_wide=is_wide) for word in said)
    is_plain = all(visit is None or word in WORDS for word, visit in zip(said, visits))
    return Named(names, visits, tuple(WORDS[word] for word in said if word in WORDS) if is_plain else None)


@lru_cache(maxsize=1000)
def is_kept(service: Hashable, name: str) -> bool:
    """A property may give something else every time. A method, or a part that a constructor sets, stays the same."""
    return not isinstance(getattr_static(service, name, None), property)


def _checked(scope: Scope, method: Callable[..., Any], named: Named) -> Callable[..., Any]:
    names, visits = named.names, named.visits
    by_name = {name: visit for name, visit in zip(names, visits) if visit is not None}
    reply_at = names.index(ON_REPLY) if ON_REPLY in names else None

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            passed = [value if visit is None else visit(scope, value) for value, visit in zip(args, visits)]
            for name in kwargs.keys() & by_name.keys():
                kwargs[name] = by_name[name](scope, kwargs[name])
        except GoQueueError as error:
            on_reply = kwargs.get(ON_REPLY) or (
                args[reply_at] if reply_at is not None and reply_at < len(args) else None
            )
            if on_reply is None:
                raise
            on_reply(error)
            return None
        return method(*passed, **kwargs)

    return call


def _for_tenant(
    scope: Scope, method: Callable[..., Any], named: Named, keep: Keep | None, *, is_free: bool
) -> Callable[..., Any]:
    """With full names to the service and plain ones back, in what it returns, tells and raises."""
    asked = _checked(Mentioning(scope) if is_free else scope, _kept(scope, method, keep), named)

    def call(*args: Any, **kwargs: Any) -> Any:
        tenancy = scope.tenancy
        passed = [_heard(tenancy, name, value) for name, value in zip(named.names, args)]
        given = {name: _heard(tenancy, name, value) for name, value in kwargs.items()}
        try:
            return shown(tenancy, asked(*passed, *args[len(passed) :], **given))
        except GoQueueError as error:
            raise shown_error(tenancy, error) from None

    return call


def _kept(scope: Scope, method: Callable[..., Any], keep: Keep | None) -> Callable[..., Any]:
    return method if keep is None else lambda *args, **kwargs: keep(scope, method(*args, **kwargs))


def _heard(tenancy: Tenancy, name: str, value: Any) -> Any:
    """Whoever is told something later is told it with plain names."""
    if not name.startswith("on_") or not callable(value):
        return value
    return lambda *told: value(*(shown(tenancy, each) for each in told))


def _paged(scope: Scope, kind: Kind, method: Callable[[str | None, int], list[str]]) -> Callable[..., list[str]]:
    if scope.is_open_to(kind):
        return method

    def page(after: str | None, count: int) -> list[str]:
        """A page that is not full is the last: so it is filled up."""
        seen: list[str] = []
        prefix = scope.tenancy.prefix
        after = prefix + (after or "") if prefix else after  # names come in their order, and ours together
        while len(seen) < count:
            names = method(after, count)
            seen += [name for name in names if scope.shows(kind, name)]
            if len(names) < count or not names[-1].startswith(prefix):
                break
            after = names[-1]
        return [scope.tenancy.plain(name) for name in seen[:count]]

    return page


def names_of(kind: Kind, field: str = "") -> Keep:
    """Of names, or of things with a name in this field."""

    def keep(scope: Scope, found: Any) -> Any:
        if scope.is_open_to(kind):
            return found
        return [each for each in found if scope.shows(kind, getattr(each, field) if field else each)]

    return keep


def pages_of(kind: Kind, field: str) -> Keep:
    """The same, of lists that come one after the other."""
    keep = names_of(kind, field)

    def keep_each(scope: Scope, found: Iterator[Any]) -> Iterator[Any]:
        return found if scope.is_open_to(kind) else (shown(scope.tenancy, keep(scope, page)) for page in found)

    return keep_each


def one_of(kind: Kind, field: str) -> Keep:
    """One thing: it may be touched, or there is none. What another tenant has is not there."""

    def keep(scope: Scope, found: Any) -> Any:
        if found is None or not scope.tenancy.owns(getattr(found, field)):
            return None
        scope.admit_kept(kind, getattr(found, field))
        return found

    return keep


def seen_of(kind: Kind, field: str) -> Keep:
    """One thing, or none if it may not be seen."""
    keep = names_of(kind, field)

    def keep_one(scope: Scope, found: Any) -> Any:
        return next(iter(keep(scope, [] if found is None else [found])), None)

    return keep_one


def held_of(scope: Scope, found: Any) -> Any:
    """Of what consumers hold."""
    shows = scope.shows
    return [run for run in found if shows(GROUP, run.place.group_id) and shows(TOPIC, run.place.topic)]


def place_of(scope: Scope, found: Any) -> Any:
    """What a receipt stands for. One of another tenant is none, to whoever shows it."""
    if not scope.tenancy.owns(found.topic):
        raise MalformedReceipt("no receipt of this queue: its signature is wrong")
    scope.admit_kept(TOPIC, found.topic)
    scope.admit_kept(GROUP, found.group_id)
    return found

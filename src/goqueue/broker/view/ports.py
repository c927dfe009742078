"""A service of the broker as one operation may use it. A method whose parameters name something is checked by their
words; all others stand in a table, with what they tell. What stands nowhere cannot be reached.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import lru_cache
from inspect import getattr_static, signature
from typing import Any, NamedTuple

from goqueue.broker.view.names import WORDS, Visit, visitor
from goqueue.broker.view.scope import Scope
from goqueue.model.access import EVERY_NAME, Kind
from goqueue.model.errors import GoQueueError

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


class Port:
    """Methods are made when they are first used. Where nothing needs to be asked they are the service's own."""

    def __init__(self, service: Any, rules: Rules, scope: Scope) -> None:
        self._service = service
        self._rules = rules
        self._scope = scope

    def __getattr__(self, name: str) -> Any:
        rules = self._rules
        if name in rules.free:
            return self._free(name)
        if name in rules.parts:
            made: Any = Port(getattr(self._service, name), rules.parts[name], self._scope)
        elif name in rules.whole:
            self._scope.admit(rules.whole[name], EVERY_NAME)
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
        return self._checked("", self._service)(*args, **kwargs)

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

    def _checked(self, name: str, method: Any) -> Any:
        words = tuple(self._rules.words.get(name, {}).items())
        named = named_parameters(getattr(method, "__func__", method), words) if callable(method) else None
        if named is None or not any(named.visits):
            raise AttributeError(
                f"goqueue.broker.view.rules does not say what {type(self._service).__name__}.{name} tells, and of whom"
            )
        scope = self._scope
        kinds = self._rules.claims.get(name, named.kinds)
        if kinds and all(scope.is_open_to(kind) for kind in kinds):
            return method
        return _checked(scope, method, named)


class Named(NamedTuple):
    """What a method's parameters name."""

    names: tuple[str, ...]
    visits: tuple[Visit | None, ...]
    kinds: tuple[Kind, ...] | None
    """None: it depends on what is passed."""


@lru_cache(maxsize=1000)
def named_parameters(function: Callable[..., Any], words: tuple[tuple[str, str], ...] = ()) -> Named:
    others = dict(words)
    names = tuple(name for name in signature(function).parameters if name != "self")
    said = [others.get(name, name) for name in names]
    visits = tuple(visitor(word) for word in said)
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


def _paged(scope: Scope, kind: Kind, method: Callable[[str | None, int], list[str]]) -> Callable[..., list[str]]:
    if scope.is_open_to(kind):
        return method

    def page(after: str | None, count: int) -> list[str]:
        """A page that is not full is the last: so it is filled up."""
        shown: list[str] = []
        while len(shown) < count:
            names = method(after, count)
            shown += [name for name in names if scope.shows(kind, name)]
            if len(names) < count:
                break
            after = names[-1]
        return shown[:count]

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
        return found if scope.is_open_to(kind) else (keep(scope, page) for page in found)

    return keep_each


def one_of(kind: Kind, field: str) -> Keep:
    """One thing: it may be touched, or there is none."""

    def keep(scope: Scope, found: Any) -> Any:
        if found is not None:
            scope.admit(kind, getattr(found, field))
        return found

    return keep


def seen_of(kind: Kind, field: str) -> Keep:
    """One thing, or none if it may not be seen."""
    keep = names_of(kind, field)

    def keep_one(scope: Scope, found: Any) -> Any:
        return next(iter(keep(scope, [] if found is None else [found])), None)

    return keep_one


def place_of(scope: Scope, found: Any) -> Any:
    """What a receipt stands for."""
    scope.admit(TOPIC, found.topic)
    scope.admit(GROUP, found.group_id)
    return found

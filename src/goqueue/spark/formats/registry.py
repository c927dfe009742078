"""Schemas as the registry has them: asked over HTTP, once in a process, since what an id stands for never changes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from goqueue.client.errors import ConnectionLost, TimedOut
from goqueue.client.http import HttpRefused
from goqueue.client.sync import Admin
from goqueue.spark.errors import SparkError
from goqueue.spark.where import Where
from goqueue.wire.rest import schemas as rest_schemas

NOT_FOUND = 404
ID_MAX = (1 << 31) - 1
"""A value that begins as one with a schema does may say any number of 32 bits. The registry gives none above this."""
KNOWN_MAX = 1000
REFERENCES_DEPTH_MAX = 32


@dataclass(frozen=True)
class Dependency:
    name: str
    text: str


@dataclass(frozen=True)
class SchemaText:
    """A schema and those that it refers to, which come first. Protobuf is a descriptor in base64."""

    id: int
    kind: str
    text: str
    dependencies: tuple[Dependency, ...] = ()
    _made: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def kept(self, make: Callable[["SchemaText"], Any]) -> Any:
        """What was made of it, made once."""
        name = make.__qualname__
        if name not in self._made:
            self._made[name] = make(self)
        return self._made[name]

    def __reduce__(self) -> Any:
        return SchemaText, (self.id, self.kind, self.text, self.dependencies)


_known: dict[tuple[Where, int], SchemaText] = {}
"""By server and id. Spark's workers live longer than a task."""


class Registry:
    """`with Registry(server) as registry`, or without: then it is opened by the first question and never closed."""

    def __init__(self, server: Where) -> None:
        self.server = server
        self._admin: Admin | None = None
        self._missing: set[int] = set()
        """Ids that the registry did not have. It may have them by the time of the next task."""

    def __enter__(self) -> "Registry":
        return self

    def __exit__(self, *_: object) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    @property
    def admin(self) -> Admin:
        if self._admin is None:
            self._admin = Admin(self.server.address, security=self.server.security)
            self._admin.start()
        return self._admin

    def latest(self, subjects: Iterable[str]) -> SchemaText | None:
        """Of the first subject that has any."""
        for subject in subjects:
            found = self._version(subject)
            if found is not None:
                return self._with_references(found)
        return None

    def by_id(self, schema_id: int) -> SchemaText | None:
        key = self.server, schema_id
        if key in _known:
            return _known[key]
        if not 0 <= schema_id <= ID_MAX or schema_id in self._missing:
            return None
        found = self._ask(lambda admin: admin.schema_by_id(schema_id, serialized=True))
        if found is None:
            if len(self._missing) < KNOWN_MAX:
                self._missing.add(schema_id)
            return None
        if len(_known) >= KNOWN_MAX:
            _known.pop(next(iter(_known)))
        _known[key] = self._with_references(found)
        return _known[key]

    def _with_references(self, found: rest_schemas.SchemaById | rest_schemas.SchemaVersion) -> SchemaText:
        dependencies: dict[str, Dependency] = {}
        self._collect(found, dependencies, 0)
        return SchemaText(found.id, found.schema_type, found.schema, tuple(dependencies.values()))

    def _collect(self, schema: rest_schemas.SchemaText, into: dict[str, Dependency], depth: int) -> None:
        for each in schema.references or ():
            if each.name in into or depth > REFERENCES_DEPTH_MAX:
                continue
            found = self._version(each.subject, each.version)
            if found is not None:
                self._collect(found, into, depth + 1)
                into[each.name] = Dependency(each.name, found.schema)

    def _version(self, subject: str, version: int | str = "latest") -> rest_schemas.SchemaVersion | None:
        found: rest_schemas.SchemaVersion | None
        found = self._ask(lambda admin: admin.schema(subject, version, serialized=True))
        return found

    def _ask(self, question: Callable[[Admin], Any]) -> Any:
        """None: there is no such schema."""
        try:
            return question(self.admin)
        except HttpRefused as error:
            if error.status == NOT_FOUND:
                return None
            raise SparkError(f"the registry at goqueue.server={self.server.address!r} refuses: {error}") from None
        except (ConnectionLost, TimedOut) as error:
            raise SparkError(f"no registry answers at goqueue.server={self.server.address!r}: {error}") from None

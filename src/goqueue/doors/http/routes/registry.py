"""What the routes of the schema registry share: each is served twice, where Confluent's clients look for it and under
/schemas, and speaks of schemas in the same shape.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import msgspec

from goqueue.broker.schemas.schemas import Given
from goqueue.broker.view.view import View
from goqueue.doors.http.call import Call
from goqueue.doors.http.operation import SLASH_SIGN, Handle, Handlers
from goqueue.machines.schemas.facts import DeleteSubject, DeleteVersion, Result, SetLevel, SetMode, VersionStored
from goqueue.model import registry_words as words
from goqueue.model.access import Permission
from goqueue.model.ledgers import LedgerKind
from goqueue.model.schemas import Level, Mode, RegistryCode, RegistryRefused, SchemaKind
from goqueue.wire.rest.operation import Operation
from goqueue.wire.rest.operations.schemas import SCHEMAS
from goqueue.wire.rest.schemas import NewSchema, ReferenceReply, SchemaVersion

H = TypeVar("H", bound=Handle)
SERIALIZED = "serialized"
PAGE_MAX = 1 << 31
EXTRAS = {"metadata": "metadata", "ruleSet": "rule_set"}
"""What is kept with a schema and not looked at, as it is called outside and here."""


class Registry(Handlers):
    def handles(
        self,
        operation: Operation[Any],
        permission: Permission,
        *,
        rests_on: tuple[LedgerKind, ...] | None = (LedgerKind.SCHEMAS,),
        is_open: bool = False,
    ) -> Callable[[H], H]:
        """Whatever the method, an answer may name an id or a version that somebody else has just registered."""

        def add(handle: H) -> H:
            @wraps(handle)
            async def below(**arguments: Any) -> Any:
                body = arguments.get("body")
                if isinstance(body, NewSchema) and body.schema_type is None:
                    body.schema_type = SchemaKind.JSON  # as its clients expect; at the root Confluent's expect Avro
                return await handle(**arguments)

            if operation in SCHEMAS.below:
                there = SCHEMAS.below[operation]
                super(Registry, self).handles(there, permission, rests_on=rests_on, is_open=is_open)(below)
            return super(Registry, self).handles(operation, permission, rests_on=rests_on, is_open=is_open)(handle)

        return add


def named(subject: str) -> str:
    """As its owner wrote it."""
    return subject.replace(SLASH_SIGN, "/")


def is_set(flag: str) -> bool:
    return flag.lower() == "true"


def page(items: list[Any], offset: int, limit: int) -> list[Any]:
    first = max(0, offset)
    return items[first : first + (limit if limit >= 0 else PAGE_MAX)]


def given_schema(body: NewSchema) -> Given:
    extras = {name: value for name, field in EXTRAS.items() if (value := getattr(body, field)) is not None}
    kind = (body.schema_type or SchemaKind.AVRO).upper()
    if kind not in SchemaKind.__members__:
        message = words.invalid_schema(f"the type {kind!r} is none of AVRO, JSON, PROTOBUF")
        raise RegistryRefused(RegistryCode.INVALID_SCHEMA, message)
    return Given(
        body.schema,
        SchemaKind(kind),
        [each.plain() for each in body.references or ()],
        msgspec.json.encode(extras, order="deterministic") if extras else b"",
    )


def shown(broker: View, schema_id: int, how: str = "") -> dict[str, Any]:
    """The fields of a schema by its id."""
    schema = broker.schemas.schema(schema_id)
    text = schema.text
    if how == SERIALIZED and schema.kind is SchemaKind.PROTOBUF:
        parsed = broker.schemas.parsed(schema_id)
        assert parsed is not None
        text = parsed.serialized
    fields: dict[str, Any] = {"schema": text, "schema_type": schema.kind.value}
    if schema.references:
        fields["references"] = [
            ReferenceReply(name=each.name, subject=each.subject, version=each.version) for each in schema.references
        ]
    if schema.extras:
        extras = msgspec.json.decode(schema.extras)
        fields |= {EXTRAS[name]: value for name, value in extras.items()}
    return fields


def version_reply(call: Call, found: VersionStored, how: str = "") -> SchemaVersion:
    fields = shown(call.broker, found.schema_id, how)
    return SchemaVersion(subject=found.subject, version=found.version, id=found.schema_id, **fields)


async def order(call: Call, command: DeleteVersion | DeleteSubject | SetLevel | SetMode) -> Result:
    """Wait for what the registry decides; raise it if it says no."""
    result: Result = await call.ask(lambda done: call.broker.schemas.submit(command, done))
    return checked(result)


def checked(result: Result) -> Result:
    if result.code is not RegistryCode.NONE:
        raise RegistryRefused(result.code, result.message)
    return result


def level_named(text: str | None) -> Level:
    if text is None or text.upper() not in Level.__members__:
        message = words.invalid_level(text, ", ".join(Level))
        raise RegistryRefused(RegistryCode.INVALID_COMPATIBILITY_LEVEL, message)
    return Level(text.upper())


def mode_named(text: str) -> Mode:
    if text.upper() not in Mode.__members__:
        raise RegistryRefused(RegistryCode.INVALID_MODE, words.invalid_mode(text, ", ".join(Mode)))
    return Mode(text.upper())

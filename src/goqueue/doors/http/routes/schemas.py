"""The schema registry: subjects, versions and schemas by id, as Confluent's clients ask for them."""

from functools import partial

from goqueue.broker.schemas.schemas import Given
from goqueue.doors.http.call import Call
from goqueue.doors.http.operation import Text
from goqueue.doors.http.permissions import DELETES_SUBJECT, DESCRIBES_SUBJECT, READS_SUBJECT, WRITES_SUBJECT
from goqueue.doors.http.routes.registry import (
    Registry,
    checked,
    given_schema,
    is_set,
    named,
    order,
    page,
    shown,
    version_reply,
)
from goqueue.machines.schemas.facts import DeleteSubject, DeleteVersion
from goqueue.model.access import OPEN
from goqueue.model.schemas import SchemaKind
from goqueue.wire.rest.operations import schemas as operations
from goqueue.wire.rest.schemas import (
    Compatibility,
    CompatibilityQuery,
    DeleteQuery,
    IdPath,
    ListQuery,
    NewSchema,
    NormalizeQuery,
    Registered,
    SchemaById,
    SchemaQuery,
    SchemasQuery,
    SchemaVersion,
    SubjectPath,
    SubjectsQuery,
    SubjectVersion,
    VersionPath,
)

PLAIN = "text/plain; charset=utf-8"  # a schema need not be JSON

schemas = Registry()


@schemas.handles(operations.LIST_SUBJECTS, DESCRIBES_SUBJECT)
async def list_subjects(call: Call, query: SubjectsQuery) -> list[str]:
    registry = call.broker.schemas
    found = registry.subjects(is_set(query.deleted) or is_set(query.deleted_only))
    if is_set(query.deleted_only):
        found = [name for name in found if not registry.versions_of(name)]
    prefix = query.subject_prefix.removeprefix(":*:")
    return page([name for name in found if name.startswith(prefix)], query.offset, query.limit)


@schemas.handles(operations.REGISTER_SCHEMA, WRITES_SUBJECT)
async def register_schema(call: Call, path: SubjectPath, query: NormalizeQuery, body: NewSchema) -> Registered:
    place = (body.id or 0, max(0, body.version or 0))
    given, normalize = given_schema(body), is_set(query.normalize)
    await _prepared(call, path.subject, given)
    result = checked(
        await call.ask(
            lambda done: call.broker.schemas.register(
                named(path.subject), given, done, normalize=normalize, place=place
            )
        )
    )
    return Registered(id=result.schema_id, version=result.version)


@schemas.handles(operations.LOOK_UP_SCHEMA, READS_SUBJECT)
async def look_up_schema(call: Call, path: SubjectPath, query: NormalizeQuery, body: NewSchema) -> SchemaVersion:
    given = given_schema(body)
    await _prepared(call, path.subject, given, compares=False)
    found = call.broker.schemas.look_up(
        named(path.subject), given, normalize=is_set(query.normalize), with_deleted=is_set(query.deleted)
    )
    return version_reply(call, found, query.format)


@schemas.handles(operations.DELETE_SUBJECT, DELETES_SUBJECT)
async def delete_subject(call: Call, path: SubjectPath, query: DeleteQuery) -> list[int]:
    result = await order(call, DeleteSubject(named(path.subject), is_set(query.permanent)))
    return list(result.versions)


@schemas.handles(operations.LIST_VERSIONS, DESCRIBES_SUBJECT)
async def list_versions(call: Call, path: SubjectPath, query: ListQuery) -> list[int]:
    found = call.broker.schemas.versions(named(path.subject), is_set(query.deleted))
    return page([each.version for each in found], query.offset, query.limit)


@schemas.handles(operations.GET_VERSION, READS_SUBJECT)
async def get_version(call: Call, path: VersionPath, query: SchemaQuery) -> SchemaVersion:
    found = call.broker.schemas.version(named(path.subject), path.version, is_set(query.deleted))
    return version_reply(call, found, query.format)


@schemas.handles(operations.GET_VERSION_TEXT, READS_SUBJECT)
async def get_version_text(call: Call, path: VersionPath, query: SchemaQuery) -> Text:
    found = call.broker.schemas.version(named(path.subject), path.version, is_set(query.deleted))
    return Text(shown(call.broker, found.schema_id, query.format)["schema"], PLAIN)


@schemas.handles(operations.LIST_REFERENCING, READS_SUBJECT)
async def list_referencing(call: Call, path: VersionPath, query: ListQuery) -> list[int]:
    found = call.broker.schemas.version(named(path.subject), path.version, with_deleted=True)
    ids = call.broker.schemas.referenced_by(found.subject, found.version, is_set(query.deleted))
    return page(ids, query.offset, query.limit)


@schemas.handles(operations.DELETE_VERSION, DELETES_SUBJECT)
async def delete_version(call: Call, path: VersionPath, query: DeleteQuery) -> int:
    subject, is_permanent = named(path.subject), is_set(query.permanent)
    registry = call.broker.schemas
    number = registry.version_number(path.version)
    if number < 0:
        number = registry.version(subject, path.version, is_permanent).version
    await order(call, DeleteVersion(subject, number, is_permanent))
    return number


@schemas.handles(operations.LIST_SCHEMAS, READS_SUBJECT)
async def list_schemas(call: Call, query: SchemasQuery) -> list[SchemaVersion]:
    registry = call.broker.schemas
    with_deleted, latest_only = is_set(query.deleted), is_set(query.latest_only)
    found = []
    for subject in registry.subjects(with_deleted):
        if subject.startswith(query.subject_prefix.removeprefix(":*:")):
            versions = registry.versions_of(subject, with_deleted)
            found += versions[-1:] if latest_only else versions
    return [version_reply(call, each) for each in page(found, query.offset, query.limit)]


@schemas.handles(operations.LIST_SCHEMA_TYPES, OPEN)
async def list_schema_types(call: Call) -> list[str]:  # noqa: ARG001
    return sorted(SchemaKind)


@schemas.handles(operations.GET_SCHEMA, READS_SUBJECT)
async def get_schema(call: Call, path: IdPath, query: SchemaQuery) -> SchemaById:
    registry = call.broker.schemas
    reply = SchemaById(id=path.id, **shown(call.broker, path.id, query.format))
    uses = registry.uses(path.id) or registry.uses(path.id, with_deleted=True)
    if uses:
        reply.subject, reply.version = uses[0].subject, uses[0].version
    return reply


@schemas.handles(operations.GET_SCHEMA_TEXT, READS_SUBJECT)
async def get_schema_text(call: Call, path: IdPath, query: SchemaQuery) -> Text:
    return Text(shown(call.broker, path.id, query.format)["schema"], PLAIN)


@schemas.handles(operations.LIST_SCHEMA_SUBJECTS, READS_SUBJECT)
async def list_schema_subjects(call: Call, path: IdPath, query: ListQuery) -> list[str]:
    call.broker.schemas.schema(path.id)
    uses = call.broker.schemas.uses(path.id, is_set(query.deleted))
    found = list(dict.fromkeys(each.subject for each in uses if query.subject in ("", each.subject)))
    return page(found, query.offset, query.limit)


@schemas.handles(operations.LIST_SCHEMA_VERSIONS, READS_SUBJECT)
async def list_schema_versions(call: Call, path: IdPath, query: ListQuery) -> list[SubjectVersion]:
    call.broker.schemas.schema(path.id)
    uses = call.broker.schemas.uses(path.id, is_set(query.deleted))
    found = [each for each in uses if query.subject in ("", each.subject)]
    return [
        SubjectVersion(subject=each.subject, version=each.version) for each in page(found, query.offset, query.limit)
    ]


@schemas.handles(operations.CHECK_COMPATIBILITY, READS_SUBJECT)
async def check_compatibility(
    call: Call, path: SubjectPath, query: CompatibilityQuery, body: NewSchema
) -> Compatibility:
    given, normalize = given_schema(body), is_set(query.normalize)
    await _prepared(call, path.subject, given)
    problems = call.broker.schemas.problems(named(path.subject), given, None, normalize=normalize)
    return _compatibility(problems, is_set(query.verbose))


@schemas.handles(operations.CHECK_COMPATIBILITY_WITH, READS_SUBJECT)
async def check_compatibility_with(
    call: Call, path: VersionPath, query: CompatibilityQuery, body: NewSchema
) -> Compatibility:
    given, normalize = given_schema(body), is_set(query.normalize)
    await _prepared(call, path.subject, given, version=path.version)
    problems = call.broker.schemas.problems(named(path.subject), given, path.version, normalize=normalize)
    return _compatibility(problems, is_set(query.verbose))


async def _prepared(
    call: Call, subject: str, given: Given, *, version: str | None = None, compares: bool = True
) -> None:
    """What takes long is done aside, before it is asked for."""
    registry = call.broker.schemas
    await call.ask(partial(registry.prepare, named(subject), given, version=version, compares=compares))


def _compatibility(problems: list[str], is_verbose: bool) -> Compatibility:
    reply = Compatibility(is_compatible=not problems)
    if is_verbose:
        reply.messages = problems
    return reply

"""The schema registry: compatibility levels, modes, and how many schemas there are."""

from goqueue.doors.http.call import Call
from goqueue.doors.http.permissions import ALTERS_SUBJECT_CONFIGS, DESCRIBES_SCHEMAS, DESCRIBES_SUBJECT_CONFIGS
from goqueue.doors.http.routes.registry import Registry, is_set, level_named, mode_named, named, order
from goqueue.machines.schemas.facts import SetLevel, SetMode
from goqueue.model import registry_words as words
from goqueue.model.access import OPEN
from goqueue.model.schema_subjects import subjects_of
from goqueue.model.schemas import EVERYWHERE, Level, Mode, RegistryCode, RegistryRefused, check_subject
from goqueue.wire.rest.operations import schemas as operations
from goqueue.wire.rest.schemas import (
    Config,
    ConfigQuery,
    ConfigReply,
    ModeBody,
    ModeQuery,
    ModeReply,
    SchemaStats,
    SubjectPath,
    SubjectStats,
)

OFF = "off"
schema_config = Registry()


def _config(level: Level | None) -> ConfigReply:
    said = (level or Level.BACKWARD).value
    return ConfigReply(compatibility=said, compatibility_level=said)


@schema_config.handles(operations.GET_CONFIG, DESCRIBES_SUBJECT_CONFIGS)
async def get_config(call: Call) -> ConfigReply:
    return _config(call.broker.schemas.level(EVERYWHERE))


@schema_config.handles(operations.SET_CONFIG, ALTERS_SUBJECT_CONFIGS)
async def set_config(call: Call, body: Config) -> ConfigReply:
    return await _set_level(call, EVERYWHERE, body)


@schema_config.handles(operations.RESET_CONFIG, ALTERS_SUBJECT_CONFIGS)
async def reset_config(call: Call) -> ConfigReply:
    before = call.broker.schemas.level(EVERYWHERE)
    await order(call, SetLevel(EVERYWHERE, None))
    return _config(before)


@schema_config.handles(operations.GET_SUBJECT_CONFIG, DESCRIBES_SUBJECT_CONFIGS)
async def get_subject_config(call: Call, path: SubjectPath, query: ConfigQuery) -> ConfigReply:
    subject = named(path.subject)
    level = call.broker.schemas.level(subject, is_set(query.default_to_global))
    if level is None:
        raise RegistryRefused(RegistryCode.SUBJECT_COMPATIBILITY_NOT_CONFIGURED, words.no_own_level(subject))
    return _config(level)


@schema_config.handles(operations.SET_SUBJECT_CONFIG, ALTERS_SUBJECT_CONFIGS)
async def set_subject_config(call: Call, path: SubjectPath, body: Config) -> ConfigReply:
    return await _set_level(call, named(path.subject), body)


@schema_config.handles(operations.RESET_SUBJECT_CONFIG, ALTERS_SUBJECT_CONFIGS)
async def reset_subject_config(call: Call, path: SubjectPath) -> ConfigReply:
    subject = named(path.subject)
    before = call.broker.schemas.level(subject)
    await order(call, SetLevel(subject, None))
    return _config(before)


async def _set_level(call: Call, subject: str, body: Config) -> ConfigReply:
    level = level_named(body.compatibility if body.compatibility is not None else body.compatibility_level)
    if subject:
        check_subject(subject)
    await order(call, SetLevel(subject, level))
    return _config(level)


@schema_config.handles(operations.GET_MODE, DESCRIBES_SUBJECT_CONFIGS)
async def get_mode(call: Call) -> ModeReply:
    return ModeReply(mode=(call.broker.schemas.mode(EVERYWHERE) or Mode.READWRITE).value)


@schema_config.handles(operations.SET_MODE, ALTERS_SUBJECT_CONFIGS)
async def set_mode(call: Call, query: ModeQuery, body: ModeBody) -> ModeReply:
    return await _set_mode(call, EVERYWHERE, query, body)


@schema_config.handles(operations.RESET_MODE, ALTERS_SUBJECT_CONFIGS)
async def reset_mode(call: Call) -> ModeReply:
    before = await get_mode(call)
    await order(call, SetMode(EVERYWHERE, None))
    return before


@schema_config.handles(operations.GET_SUBJECT_MODE, DESCRIBES_SUBJECT_CONFIGS)
async def get_subject_mode(call: Call, path: SubjectPath, query: ConfigQuery) -> ModeReply:
    subject = named(path.subject)
    mode = call.broker.schemas.mode(subject, is_set(query.default_to_global))
    if mode is None:
        raise RegistryRefused(RegistryCode.SUBJECT_MODE_NOT_CONFIGURED, words.no_own_mode(subject))
    return ModeReply(mode=mode.value)


@schema_config.handles(operations.SET_SUBJECT_MODE, ALTERS_SUBJECT_CONFIGS)
async def set_subject_mode(call: Call, path: SubjectPath, query: ModeQuery, body: ModeBody) -> ModeReply:
    return await _set_mode(call, named(path.subject), query, body)


@schema_config.handles(operations.RESET_SUBJECT_MODE, ALTERS_SUBJECT_CONFIGS)
async def reset_subject_mode(call: Call, path: SubjectPath) -> ModeReply:
    before = await get_subject_mode(call, path, ConfigQuery(default_to_global="true"))
    await order(call, SetMode(named(path.subject), None))
    return before


async def _set_mode(call: Call, subject: str, query: ModeQuery, body: ModeBody) -> ModeReply:
    if subject:
        check_subject(subject)
    mode = mode_named(body.mode)
    await order(call, SetMode(subject, mode, is_set(query.force)))
    return ModeReply(mode=mode.value)


@schema_config.handles(operations.LIST_CONTEXTS, OPEN)
async def list_contexts(call: Call) -> list[str]:  # noqa: ARG001
    return ["."]


@schema_config.handles(operations.SCHEMA_STATS, DESCRIBES_SCHEMAS)
async def schema_stats(call: Call) -> SchemaStats:
    registry = call.broker.schemas
    topics = call.broker.topics
    checked: set[str] = set()
    for topic in topics.image.topics.values():
        options = topic.options(topics.defaults)
        if options.schema_validation != OFF:
            checked.update(subjects_of(topic.name, options))
    subjects = []
    versions = 0
    for name in registry.subjects():
        found = registry.versions_of(name)
        versions += len(found)
        subjects.append(
            SubjectStats(
                subject=name,
                version_count=len(found),
                latest_version=found[-1].version,
                latest_schema_id=found[-1].schema_id,
                compatibility=(registry.level(name) or Level.BACKWARD).value,
                validation_enabled=name in checked,
            )
        )
    everywhere = (registry.level(EVERYWHERE) or Level.BACKWARD).value
    schemas = registry.schema_count()
    return SchemaStats(
        subjects=len(subjects),
        schemas=schemas,
        versions=versions,
        subject_count=len(subjects),
        total_schemas=schemas,
        global_compatibility=everywhere,
        validation_enabled=bool(checked),
        cached_validators=registry.parsed_count,
        rejected_total=call.broker.validation.rejected,
        dead_lettered_total=call.broker.validation.dead_lettered,
        subject_stats=subjects,
    )

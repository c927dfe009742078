"""Operations of the schema registry."""

from typing import Any

from goqueue.wire.home import HERE, at
from goqueue.wire.home import SCHEMAS as REGISTRY
from goqueue.wire.rest import schemas
from goqueue.wire.rest.operation import TEXT, Operation, R, Resource


class Registry(Resource):
    """Most is served twice: where Confluent's clients look for it, and under /schemas."""

    def __init__(self) -> None:
        # Clients of other registries send what only those know.
        super().__init__("Schemas", schemas.RegistryErrorReply, takes_any_query=True)
        self.below: dict[Operation[Any], Operation[Any]] = {}
        """The one under /schemas, by the one at the root."""

    def add_both(self, name: str, place: str, reply: type[R], words: str, **more: Any) -> Operation[R]:
        operation = self.add(name, place, reply, words, **more)
        summary, line, description = words.partition("\n")
        method, _, path = place.partition(" ")
        self.below[operation] = self.add(
            f"{name}_below_schemas",
            f"{method} /schemas{path}",
            reply,
            f"{summary.rstrip('.')} (below /schemas){line}{description}",
            **more,
        )
        return operation


SCHEMAS = Registry()

LIST_SUBJECTS = SCHEMAS.add_both(
    "list_subjects",
    "GET /subjects",
    list[str],
    "Names of all subjects.",
    query=schemas.SubjectsQuery,
    errors=(422,),
    home=at(REGISTRY),
)

REGISTER_SCHEMA = SCHEMAS.add_both(
    "register_schema",
    "POST /subjects/{subject}/versions",
    schemas.Registered,
    """Register a schema under a subject.

    A schema that the subject has already keeps its version; one that another subject has keeps its id.
    """,
    path=schemas.SubjectPath,
    query=schemas.NormalizeQuery,
    body=schemas.NewSchema,
    errors=(409, 413, 422),
    home=at(REGISTRY),
)

LOOK_UP_SCHEMA = SCHEMAS.add_both(
    "look_up_schema",
    "POST /subjects/{subject}",
    schemas.SchemaVersion,
    "Under which version a subject has a schema.",
    path=schemas.SubjectPath,
    query=schemas.NormalizeQuery,
    body=schemas.NewSchema,
    errors=(404, 422),
    home=at(REGISTRY),
)

DELETE_SUBJECT = SCHEMAS.add_both(
    "delete_subject",
    "DELETE /subjects/{subject}",
    list[int],
    """Delete all versions of a subject.

    What was deleted is kept until it is deleted again with `permanent=true`.
    """,
    path=schemas.SubjectPath,
    query=schemas.DeleteQuery,
    errors=(404, 422),
    home=at(REGISTRY),
)

LIST_VERSIONS = SCHEMAS.add_both(
    "list_versions",
    "GET /subjects/{subject}/versions",
    list[int],
    "Numbers of the versions of a subject.",
    path=schemas.SubjectPath,
    query=schemas.ListQuery,
    errors=(404, 422),
    home=at(REGISTRY),
)

GET_VERSION = SCHEMAS.add_both(
    "get_version",
    "GET /subjects/{subject}/versions/{version}",
    schemas.SchemaVersion,
    "One version of a subject.",
    path=schemas.VersionPath,
    query=schemas.SchemaQuery,
    errors=(404, 422),
    home=at(REGISTRY),
)

GET_VERSION_TEXT = SCHEMAS.add_both(
    "get_version_text",
    "GET /subjects/{subject}/versions/{version}/schema",
    str,
    "The text of one version, as it is.",
    path=schemas.VersionPath,
    query=schemas.SchemaQuery,
    errors=(404, 422),
    media_type=TEXT,
    home=at(REGISTRY),
)

LIST_REFERENCING = SCHEMAS.add_both(
    "list_referencing",
    "GET /subjects/{subject}/versions/{version}/referencedby",
    list[int],
    "Ids of the schemas that refer to one version.",
    path=schemas.VersionPath,
    query=schemas.ListQuery,
    errors=(404, 422),
    home=at(REGISTRY),
)

DELETE_VERSION = SCHEMAS.add_both(
    "delete_version",
    "DELETE /subjects/{subject}/versions/{version}",
    int,
    """Delete one version; gives its number.

    With `permanent=true`: one that was deleted before, for good.
    """,
    path=schemas.VersionPath,
    query=schemas.DeleteQuery,
    errors=(404, 422),
    home=at(REGISTRY),
)

LIST_SCHEMAS = SCHEMAS.add(
    "list_schemas",
    "GET /schemas",
    list[schemas.SchemaVersion],
    "All versions of all subjects.",
    query=schemas.SchemasQuery,
    errors=(422,),
    home=at(REGISTRY),
)

LIST_SCHEMA_TYPES = SCHEMAS.add_both(
    "list_schema_types",
    "GET /schemas/types",
    list[str],
    "The formats of schemas that are understood.",
    home=HERE,
)

GET_SCHEMA = SCHEMAS.add_both(
    "get_schema",
    "GET /schemas/ids/{id}",
    schemas.SchemaById,
    "A schema by its id, and where it was registered first.",
    path=schemas.IdPath,
    query=schemas.SchemaQuery,
    errors=(404, 422),
    home=at(REGISTRY),
)

GET_SCHEMA_TEXT = SCHEMAS.add_both(
    "get_schema_text",
    "GET /schemas/ids/{id}/schema",
    str,
    "The text of a schema by its id, as it is.",
    path=schemas.IdPath,
    query=schemas.SchemaQuery,
    errors=(404, 422),
    media_type=TEXT,
    home=at(REGISTRY),
)

LIST_SCHEMA_SUBJECTS = SCHEMAS.add_both(
    "list_schema_subjects",
    "GET /schemas/ids/{id}/subjects",
    list[str],
    "The subjects that have a schema.",
    path=schemas.IdPath,
    query=schemas.ListQuery,
    errors=(404, 422),
    home=at(REGISTRY),
)

LIST_SCHEMA_VERSIONS = SCHEMAS.add_both(
    "list_schema_versions",
    "GET /schemas/ids/{id}/versions",
    list[schemas.SubjectVersion],
    "The versions that have a schema.",
    path=schemas.IdPath,
    query=schemas.ListQuery,
    errors=(404, 422),
    home=at(REGISTRY),
)

CHECK_COMPATIBILITY = SCHEMAS.add_both(
    "check_compatibility",
    "POST /compatibility/subjects/{subject}/versions",
    schemas.Compatibility,
    "Whether a schema could be registered now, by the compatibility level of the subject.",
    path=schemas.SubjectPath,
    query=schemas.CompatibilityQuery,
    body=schemas.NewSchema,
    errors=(404, 422),
    home=at(REGISTRY),
)

CHECK_COMPATIBILITY_WITH = SCHEMAS.add_both(
    "check_compatibility_with",
    "POST /compatibility/subjects/{subject}/versions/{version}",
    schemas.Compatibility,
    "Whether a schema is compatible with one version, by the compatibility level of the subject.",
    path=schemas.VersionPath,
    query=schemas.CompatibilityQuery,
    body=schemas.NewSchema,
    errors=(404, 422),
    home=at(REGISTRY),
)

GET_CONFIG = SCHEMAS.add_both(
    "get_config",
    "GET /config",
    schemas.ConfigReply,
    "The compatibility level of subjects that have none of their own.",
    home=at(REGISTRY),
)

SET_CONFIG = SCHEMAS.add_both(
    "set_config",
    "PUT /config",
    schemas.ConfigReply,
    "Set the compatibility level of subjects that have none of their own.",
    body=schemas.Config,
    errors=(422,),
    home=at(REGISTRY),
)

RESET_CONFIG = SCHEMAS.add_both(
    "reset_config",
    "DELETE /config",
    schemas.ConfigReply,
    "Back to BACKWARD; gives the level that was.",
    home=at(REGISTRY),
)

GET_SUBJECT_CONFIG = SCHEMAS.add_both(
    "get_subject_config",
    "GET /config/{subject}",
    schemas.ConfigReply,
    """The compatibility level of a subject.

    With `defaultToGlobal=true`: that of all subjects, where it has none of its own.
    """,
    path=schemas.SubjectPath,
    query=schemas.ConfigQuery,
    errors=(404, 422),
    home=at(REGISTRY),
)

SET_SUBJECT_CONFIG = SCHEMAS.add_both(
    "set_subject_config",
    "PUT /config/{subject}",
    schemas.ConfigReply,
    "Set the compatibility level of a subject.",
    path=schemas.SubjectPath,
    body=schemas.Config,
    errors=(422,),
    home=at(REGISTRY),
)

RESET_SUBJECT_CONFIG = SCHEMAS.add_both(
    "reset_subject_config",
    "DELETE /config/{subject}",
    schemas.ConfigReply,
    "A subject has no compatibility level of its own any more; gives the one that it had.",
    path=schemas.SubjectPath,
    errors=(404, 422),
    home=at(REGISTRY),
)

GET_MODE = SCHEMAS.add_both(
    "get_mode", "GET /mode", schemas.ModeReply, "Whether schemas may be registered.", home=at(REGISTRY)
)

SET_MODE = SCHEMAS.add_both(
    "set_mode",
    "PUT /mode",
    schemas.ModeReply,
    "Set whether schemas may be registered: READWRITE, READONLY or IMPORT.",
    query=schemas.ModeQuery,
    body=schemas.ModeBody,
    errors=(422,),
    home=at(REGISTRY),
)

RESET_MODE = SCHEMAS.add_both(
    "reset_mode",
    "DELETE /mode",
    schemas.ModeReply,
    "Back to READWRITE; gives the mode that was.",
    home=at(REGISTRY),
)

GET_SUBJECT_MODE = SCHEMAS.add_both(
    "get_subject_mode",
    "GET /mode/{subject}",
    schemas.ModeReply,
    """The mode of a subject.

    With `defaultToGlobal=true`: that of all subjects, where it has none of its own.
    """,
    path=schemas.SubjectPath,
    query=schemas.ConfigQuery,
    errors=(404, 422),
    home=at(REGISTRY),
)

SET_SUBJECT_MODE = SCHEMAS.add_both(
    "set_subject_mode",
    "PUT /mode/{subject}",
    schemas.ModeReply,
    "Set the mode of a subject.",
    path=schemas.SubjectPath,
    query=schemas.ModeQuery,
    body=schemas.ModeBody,
    errors=(422,),
    home=at(REGISTRY),
)

RESET_SUBJECT_MODE = SCHEMAS.add_both(
    "reset_subject_mode",
    "DELETE /mode/{subject}",
    schemas.ModeReply,
    "A subject has no mode of its own any more; gives the one that it had.",
    path=schemas.SubjectPath,
    errors=(404, 422),
    home=at(REGISTRY),
)

LIST_CONTEXTS = SCHEMAS.add_both(
    "list_contexts", "GET /contexts", list[str], "There is one context, the default one.", home=HERE
)

SCHEMA_STATS = SCHEMAS.add(
    "schema_stats",
    "GET /schemas/stats",
    schemas.SchemaStats,
    "How many schemas there are, and which topics are checked.",
    home=at(REGISTRY),
)

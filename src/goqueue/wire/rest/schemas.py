"""The schema registry, in the shapes of Confluent's."""

from typing import Annotated, Any, Self

from msgspec import UNSET, Meta, Struct, UnsetType

from goqueue.model.schemas import Reference, RegistryRefused
from goqueue.wire.rest.common import INT32_MAX, Count, ErrorReply, Query, Reply

TEXT_CHARS_MAX = 1 << 20
REFERENCES_MAX = 100

Subject = Annotated[str, Meta(min_length=1, max_length=255, description="Name of a subject", examples=["orders-value"])]
SchemaId = Annotated[int, Meta(ge=0, le=INT32_MAX, description="Id of a schema", examples=[1])]
VersionName = Annotated[
    str, Meta(min_length=1, max_length=20, description="A version, or `latest`", examples=["latest"])
]
Flag = Annotated[
    str,
    Meta(
        pattern=r"^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])?\Z",
        max_length=5,
        description="true or false, in any case: Confluent's Python client says True",
        examples=["true"],
    ),
]
KindName = Annotated[
    str,
    Meta(max_length=20, description="AVRO, JSON or PROTOBUF; absent: AVRO, but JSON below /schemas", examples=["JSON"]),
]


class RegistryErrorReply(ErrorReply):
    """As all errors of this door, and as Confluent's clients expect them."""

    error_code: Annotated[int, Meta(description="Confluent's number", examples=[40401])]
    message: Annotated[str, Meta(description="What is wrong, again")]

    @classmethod
    def of(cls, error: Exception, status: int, code: str) -> Self:
        number = int(error.code) if isinstance(error, RegistryRefused) else status
        return cls(error=str(error), status=status, code=code, error_code=number, message=str(error))


class GivenReference(Struct, kw_only=True):
    name: Annotated[str, Meta(min_length=1, max_length=255)]
    subject: Subject
    version: Annotated[int, Meta(ge=-1, le=INT32_MAX)]

    def plain(self) -> Reference:
        return Reference(self.name, self.subject, self.version)


class NewSchema(Struct, kw_only=True, rename="camel"):
    """Fields of other registries are passed over, as their clients expect."""

    schema: Annotated[str, Meta(max_length=TEXT_CHARS_MAX, description="The text of the schema")]
    schema_type: KindName | None = None
    references: Annotated[list[GivenReference], Meta(max_length=REFERENCES_MAX)] | None = None
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = None
    id: SchemaId | None = None
    version: Annotated[int, Meta(ge=-1, le=INT32_MAX)] | None = None


class SubjectPath(Query):
    subject: Subject


class VersionPath(Query):
    subject: Subject
    version: VersionName


class IdPath(Query):
    id: SchemaId


class SubjectsQuery(Query, rename="camel"):
    subject_prefix: Annotated[str, Meta(max_length=255)] = ""
    deleted: Flag = "false"
    deleted_only: Flag = "false"
    offset: int = 0
    limit: int = -1


class SchemasQuery(Query, rename="camel"):
    subject_prefix: Annotated[str, Meta(max_length=255)] = ""
    deleted: Flag = "false"
    latest_only: Flag = "false"
    offset: int = 0
    limit: int = -1


class ListQuery(Query):
    deleted: Flag = "false"
    subject: Annotated[str, Meta(max_length=255)] = ""
    offset: int = 0
    limit: int = -1


class SchemaQuery(Query):
    deleted: Flag = "false"
    format: Annotated[str, Meta(max_length=40, description="`serialized`: Protobuf as a descriptor in base64")] = ""


class NormalizeQuery(Query):
    normalize: Flag = "false"
    deleted: Flag = "false"
    format: Annotated[str, Meta(max_length=40)] = ""


class CompatibilityQuery(Query):
    normalize: Flag = "false"
    verbose: Flag = "false"


class DeleteQuery(Query):
    permanent: Flag = "false"


class Registered(Reply):
    id: SchemaId
    version: int


class ReferenceReply(Reply):
    name: str
    subject: str
    version: int


class SchemaText(Reply, rename="camel"):
    schema: str
    schema_type: str
    references: list[ReferenceReply] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    rule_set: dict[str, Any] | UnsetType = UNSET


class SchemaById(SchemaText, kw_only=True, rename="camel"):
    id: SchemaId
    subject: str | UnsetType = UNSET
    version: int | UnsetType = UNSET


class SchemaVersion(SchemaText, kw_only=True, rename="camel"):
    subject: str
    version: int
    id: SchemaId


class SubjectVersion(Reply):
    subject: str
    version: int


class Compatibility(Reply):
    is_compatible: bool
    messages: list[str] | UnsetType = UNSET


class Config(Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    compatibility: Annotated[str, Meta(max_length=40)] | None = None
    compatibility_level: Annotated[str, Meta(max_length=40)] | None = None


class ConfigReply(Reply, rename="camel"):
    compatibility: str
    compatibility_level: str


class ConfigQuery(Query, rename="camel"):
    default_to_global: Flag = "false"


class ModeBody(Struct, kw_only=True):
    mode: Annotated[str, Meta(max_length=40, examples=["READONLY"])]


class ModeQuery(Query):
    force: Flag = "false"


class ModeReply(Reply):
    mode: str


class SubjectStats(Reply, rename="camel"):
    subject: str
    version_count: int
    latest_version: int
    latest_schema_id: SchemaId
    compatibility: str
    validation_enabled: bool


class SchemaStats(Reply, rename="camel"):
    subjects: Count
    schemas: Count
    versions: Count
    subject_count: Count
    total_schemas: Count
    global_compatibility: str
    validation_enabled: bool
    cached_validators: Count
    rejected_total: Annotated[Count, Meta(description="Records turned away since the start of the node")]
    dead_lettered_total: Annotated[Count, Meta(description="Records made dead letters since the start of the node")]
    subject_stats: list[SubjectStats]

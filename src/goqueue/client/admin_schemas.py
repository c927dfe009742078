"""The part of `Admin` that looks after schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goqueue.client.admin_part import AdminPart
from goqueue.wire.rest import operations as on

if TYPE_CHECKING:
    from goqueue.wire.rest import schemas as rest_schemas

SERIALIZED = "serialized"


class SchemaAdmin(AdminPart):
    async def subjects(self) -> list[str]:
        return await self.call(on.schemas.LIST_SUBJECTS)

    async def schema_versions(self, subject: str) -> list[int]:
        return await self.call(on.schemas.LIST_VERSIONS, subject=subject)

    async def schemas(self) -> list[rest_schemas.SchemaVersion]:
        """All versions of all subjects."""
        return await self.call(on.schemas.LIST_SCHEMAS)

    async def register_schema(self, subject: str, schema: str, kind: str = "AVRO") -> rest_schemas.Registered:
        """`kind`: AVRO, JSON or PROTOBUF. A schema that the subject has already keeps its id and version."""
        return await self.call(on.schemas.REGISTER_SCHEMA, subject=subject, schema=schema, schema_type=kind)

    async def schema(
        self, subject: str, version: int | str = "latest", *, serialized: bool = False
    ) -> rest_schemas.SchemaVersion:
        """`serialized`: a Protobuf schema as a descriptor in base64, not as text."""
        how = SERIALIZED if serialized else None
        return await self.call(on.schemas.GET_VERSION, subject=subject, version=version, format=how)

    async def schema_by_id(self, schema_id: int, *, serialized: bool = False) -> rest_schemas.SchemaById:
        return await self.call(on.schemas.GET_SCHEMA, id=schema_id, format=SERIALIZED if serialized else None)

    async def check_schema(
        self, subject: str, schema: str, kind: str = "AVRO", *, version: int | str | None = None
    ) -> rest_schemas.Compatibility:
        """Whether it could be registered now; or whether it fits to one version."""
        given = {"subject": subject, "schema": schema, "schema_type": kind, "verbose": True}
        if version is None:
            return await self.call(on.schemas.CHECK_COMPATIBILITY, **given)
        return await self.call(on.schemas.CHECK_COMPATIBILITY_WITH, version=version, **given)

    async def delete_schema(
        self, subject: str, version: int | str | None = None, *, permanent: bool = False
    ) -> list[int]:
        """Without a version all of them. Gives the numbers of those that are gone."""
        given = {"subject": subject, "permanent": permanent or None}
        if version is None:
            return await self.call(on.schemas.DELETE_SUBJECT, **given)
        return [await self.call(on.schemas.DELETE_VERSION, version=version, **given)]

    async def compatibility(self, subject: str | None = None) -> str:
        """The level that holds for a subject, or for those that have none of their own."""
        if subject is None:
            return (await self.call(on.schemas.GET_CONFIG)).compatibility_level
        found = await self.call(on.schemas.GET_SUBJECT_CONFIG, subject=subject, default_to_global=True)
        return found.compatibility_level

    async def set_compatibility(self, level: str, subject: str | None = None) -> str:
        if subject is None:
            return (await self.call(on.schemas.SET_CONFIG, compatibility=level)).compatibility_level
        return (
            await self.call(on.schemas.SET_SUBJECT_CONFIG, subject=subject, compatibility=level)
        ).compatibility_level

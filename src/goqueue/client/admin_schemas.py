"""The part of `Admin` that looks after schemas."""

from collections.abc import Mapping
from typing import Any

from goqueue.client.admin_part import AdminPart
from goqueue.client.http import word
from goqueue.wire.rest import schemas as rest_schemas


class SchemaAdmin(AdminPart):
    async def subjects(self) -> list[str]:
        return await self._http.ask(list[str], "GET", "/subjects")

    async def schema_versions(self, subject: str) -> list[int]:
        return await self._http.ask(list[int], "GET", f"/subjects/{word(subject)}/versions")

    async def schemas(self) -> list[rest_schemas.SchemaVersion]:
        """All versions of all subjects."""
        return await self._http.ask(list[rest_schemas.SchemaVersion], "GET", "/schemas")

    async def register_schema(self, subject: str, schema: str, kind: str = "AVRO") -> rest_schemas.Registered:
        """`kind`: AVRO, JSON or PROTOBUF. A schema that the subject has already keeps its id and version."""
        path = f"/subjects/{word(subject)}/versions"
        return await self._http.ask(rest_schemas.Registered, "POST", path, _new(schema, kind))

    async def schema(
        self, subject: str, version: int | str = "latest", *, serialized: bool = False
    ) -> rest_schemas.SchemaVersion:
        """`serialized`: a Protobuf schema as a descriptor in base64, not as text."""
        path = f"/subjects/{word(subject)}/versions/{word(str(version))}"
        return await self._http.ask(rest_schemas.SchemaVersion, "GET", path, query=_how(serialized))

    async def schema_by_id(self, schema_id: int, *, serialized: bool = False) -> rest_schemas.SchemaById:
        return await self._http.ask(rest_schemas.SchemaById, "GET", f"/schemas/ids/{schema_id}", query=_how(serialized))

    async def check_schema(
        self, subject: str, schema: str, kind: str = "AVRO", *, version: int | str | None = None
    ) -> rest_schemas.Compatibility:
        """Whether it could be registered now; or whether it fits to one version."""
        path = f"/compatibility/subjects/{word(subject)}/versions"
        if version is not None:
            path = f"{path}/{word(str(version))}"
        query = {"verbose": "true"}
        return await self._http.ask(rest_schemas.Compatibility, "POST", path, _new(schema, kind), query=query)

    async def delete_schema(
        self, subject: str, version: int | str | None = None, *, permanent: bool = False
    ) -> list[int]:
        """Without a version all of them. Gives the numbers of those that are gone."""
        path = f"/subjects/{word(subject)}"
        query = {"permanent": "true" if permanent else None}
        if version is None:
            return await self._http.ask(list[int], "DELETE", path, query=query)
        return [await self._http.ask(int, "DELETE", f"{path}/versions/{word(str(version))}", query=query)]

    async def compatibility(self, subject: str | None = None) -> str:
        """The level that holds for a subject, or for those that have none of their own."""
        path = "/config" if subject is None else f"/config/{word(subject)}"
        query = {"defaultToGlobal": None if subject is None else "true"}
        return (await self._http.ask(rest_schemas.ConfigReply, "GET", path, query=query)).compatibility_level

    async def set_compatibility(self, level: str, subject: str | None = None) -> str:
        path = "/config" if subject is None else f"/config/{word(subject)}"
        body = {"compatibility": level}
        return (await self._http.ask(rest_schemas.ConfigReply, "PUT", path, body)).compatibility_level


def _how(serialized: bool) -> Mapping[str, Any]:
    return {"format": "serialized" if serialized else None}


def _new(schema: str, kind: str) -> Mapping[str, Any]:
    return {"schema": schema, "schemaType": kind}

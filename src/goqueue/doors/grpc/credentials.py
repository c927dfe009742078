"""Who calls, by what the metadata of a call shows."""

from collections.abc import Mapping
from typing import Any

from goqueue.broker.access import Access
from goqueue.broker.gate import Gate
from goqueue.model.credentials import Credentials
from goqueue.model.listener import IN_PROCESS, Connected
from goqueue.model.tenancy import TENANT_METADATA


async def admitted(gate: Gate, context: Any, connected: Connected = IN_PROCESS) -> Access:
    if gate.logins is None:
        return gate.admit(Credentials("grpc", tenant=_tenant(dict(context.invocation_metadata() or ()))))
    said: Mapping[str, Any] = dict(context.invocation_metadata() or ())
    connected = connected._replace(peer=peer_of(context)) if connected is not IN_PROCESS else connected
    authorization, api_key = str(said.get("authorization", "")), str(said.get("x-api-key", ""))
    return await gate.admit_request(Credentials.of_headers("grpc", connected, authorization, api_key, _tenant(said)))


def _tenant(said: Mapping[str, Any]) -> str:
    return str(said.get(TENANT_METADATA, ""))


def peer_of(context: Any) -> str:
    """`ipv4:127.0.0.1:5000` or `ipv6:%5B::1%5D:5000` as host:port."""
    told = str(context.peer()).partition(":")[2]
    return told.replace("%5B", "").replace("%5D", "")

"""Who calls: what the metadata of a call shows, or what another node says whose stream it carries."""

from collections.abc import Mapping
from typing import Any

from goqueue.broker.gate import Access, Credentials, Gate
from goqueue.model.listener import IN_PROCESS, Connected

AS, PROOF = "gq-as", "gq-proof-bin"
"""Metadata of a stream that one node carries for another: who called, and the proof that a node says so."""


async def admitted(gate: Gate, context: Any, path: str, data: bytes, connected: Connected = IN_PROCESS) -> Access:
    if gate.logins is None:
        return gate.admit(Credentials("grpc"))
    said: Mapping[str, Any] = dict(context.invocation_metadata() or ())
    if AS in said:
        who = str(said[AS])
        is_vouched = gate.logins.is_vouched(who, f"{path}\0".encode() + data, said.get(PROOF, b""))
        return await gate.admit_request(Credentials("grpc", principal=who if is_vouched else ""))
    connected = connected._replace(peer=peer_of(context)) if connected is not IN_PROCESS else connected
    authorization, api_key = str(said.get("authorization", "")), str(said.get("x-api-key", ""))
    return await gate.admit_request(Credentials.of_headers("grpc", connected, authorization, api_key))


def peer_of(context: Any) -> str:
    """`ipv4:127.0.0.1:5000` or `ipv6:%5B::1%5D:5000` as host:port."""
    told = str(context.peer()).partition(":")[2]
    return told.replace("%5B", "").replace("%5D", "")

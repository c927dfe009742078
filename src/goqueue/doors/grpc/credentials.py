"""Who calls: what the metadata of a call shows, or what another node says whose stream it carries."""

import asyncio
import base64
import binascii
from collections.abc import Mapping
from typing import Any

from goqueue.broker.gate import Access, Credentials, Gate, NotAuthenticated, Principal
from goqueue.model.listener import IN_PROCESS, Connected

AS, PROOF = "gq-as", "gq-proof-bin"
"""Metadata of a stream that one node carries for another: who called, and the proof that a node says so."""


async def admitted(gate: Gate, context: Any, path: str, data: bytes, connected: Connected = IN_PROCESS) -> Access:
    """NotAuthenticated is raised a little later than it is known: who guesses has to wait."""
    if gate.logins is None:
        return gate.admit(Credentials("grpc"))
    said: Mapping[str, Any] = dict(context.invocation_metadata() or ())
    connected = connected._replace(peer=peer_of(context)) if connected is not IN_PROCESS else connected
    try:
        if AS in said:
            who = str(said[AS])
            if not gate.logins.is_vouched(who, f"{path}\0".encode() + data, said.get(PROOF, b"")):
                raise NotAuthenticated("no node of this cluster has said that")
            return gate.admit(Credentials("grpc", principal=who))
        return await _admitted(gate, said, connected)
    except NotAuthenticated:
        over = asyncio.Event()
        gate.clock.call_after(gate.logins.delay_ms, over.set)
        await over.wait()
        raise


async def _admitted(gate: Gate, said: Mapping[str, Any], connected: Connected) -> Access:
    kind, _, rest = str(said.get("authorization", "")).strip().partition(" ")
    key = rest.strip() if kind.lower() == "bearer" else str(said.get("x-api-key", ""))
    if kind.lower() == "basic":
        return gate.access(await _log_in(gate, rest.strip(), connected), connected)
    return gate.admit(Credentials("grpc", connected.peer, connected, key))


async def _log_in(gate: Gate, basic: str, connected: Connected) -> Principal:
    try:
        name, colon, password = base64.b64decode(basic, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        name, colon, password = "", "", ""
    if not colon or not name:
        raise NotAuthenticated("the metadata authorization is not as Basic has it")
    done: asyncio.Future[Principal | NotAuthenticated] = asyncio.get_running_loop().create_future()

    def logged_in(found: Principal | NotAuthenticated) -> None:
        if not done.done():
            done.set_result(found)

    gate.log_in(name, password, connected, logged_in)
    found = await done
    if isinstance(found, NotAuthenticated):
        raise found
    return found


def peer_of(context: Any) -> str:
    """`ipv4:127.0.0.1:5000` or `ipv6:%5B::1%5D:5000` as host:port."""
    told = str(context.peer()).partition(":")[2]
    return told.replace("%5B", "").replace("%5D", "")

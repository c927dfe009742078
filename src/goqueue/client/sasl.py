"""The first words on a connection to a Kafka port that asks who is there."""

from goqueue.client.connection import Connection
from goqueue.client.errors import BrokerRefused
from goqueue.client.security import Security
from goqueue.model.codes import Code
from goqueue.model.refusal import Refused
from goqueue.model.scram import Mechanism
from goqueue.ports.dice import Dice
from goqueue.wire.kafka.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from goqueue.wire.sasl.oauthbearer import OAUTHBEARER, Bearer
from goqueue.wire.sasl.plain import PLAIN, Plain
from goqueue.wire.sasl.scram import NONCE_BYTES, ScramClient


async def authenticate(connection: Connection, security: Security, dice: Dice) -> None:
    """BrokerRefused: the broker does not believe it, or does not offer the mechanism."""
    mechanism, name, password = security.sasl
    tenant = security.tenant or ""
    shake = await connection.ask(SaslHandshakeRequest(mechanism), SaslHandshakeResponse)
    if shake.error_code:
        offered = ", ".join(shake.mechanisms) or "none"
        raise BrokerRefused(
            Code(shake.error_code), f"{connection.address} does not offer {mechanism} (it has {offered})"
        )
    if mechanism == PLAIN:
        await _say(connection, Plain(name, password, tenant).encode())
        return
    if mechanism == OAUTHBEARER:
        await _say(connection, Bearer(password, tenant).encode())
        return
    client = ScramClient(Mechanism(mechanism), name, password, dice.randbytes(NONCE_BYTES).hex(), tenant)
    try:
        answer = await _say(connection, client.step(await _say(connection, client.first())))
        client.step(answer)
    except Refused as error:
        raise BrokerRefused(error.code, f"{connection.address}: {error}") from None


async def _say(connection: Connection, words: bytes) -> bytes:
    answer = await connection.ask(SaslAuthenticateRequest(words), SaslAuthenticateResponse)
    if answer.error_code:
        raise BrokerRefused(Code(answer.error_code), answer.error_message or "")
    return bytes(answer.auth_bytes)

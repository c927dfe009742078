"""SCRAM (RFC 5802, RFC 7677): both sides show that they know a password, and neither says it.

Passwords are UTF-8 as they were given: Kafka's clients do not prepare them, so a server that did would refuse them.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable

from goqueue.model.scram import ITERATIONS_MIN, Mechanism, Verifier, mac, salted_password
from goqueue.wire.sasl.acting import authorization_of, tenant_asked_for
from goqueue.wire.sasl.failure import SaslFailed

NONCE_BYTES = 24
MESSAGE_BYTES_MAX = 4096
CLIENT_ITERATIONS_MAX = 1_000_000


class ScramServer:
    """`find`: the verifier of a user. Of one that there is not it is one that no password fits, so that nobody learns
    from the answers who there is."""

    def __init__(self, mechanism: Mechanism, nonce: str, find: Callable[[str], Verifier]) -> None:
        self._mechanism = mechanism
        self._nonce = nonce
        self._find = find
        self._verifier: Verifier | None = None
        self._gs2 = b""
        self._messages = b""
        self.name = ""
        """Of the user; shown to be theirs when `is_done`."""
        self.tenant = ""
        """That it acts for; empty: its own."""
        self.is_done = False

    def step(self, data: bytes) -> bytes:
        """The next message to the client."""
        if len(data) > MESSAGE_BYTES_MAX or self.is_done:
            raise SaslFailed("this is no message of SCRAM")
        return self._first(data) if self._verifier is None else self._final(self._verifier, data)

    def _first(self, data: bytes) -> bytes:
        parts = data.split(b",", 2)
        if len(parts) < 3 or parts[0] not in (b"n", b"y"):
            words = "channel binding is not offered" if data.startswith(b"p=") else "this is no message of SCRAM"
            raise SaslFailed(words)
        gs2_flag, authorization, bare = parts
        fields = _fields(bare)
        name, nonce = fields.get("n"), fields.get("r")
        if not name or not nonce or not bare.startswith(b"n="):
            raise SaslFailed("this is no first message of SCRAM")
        if "tokenauth" in fields:
            raise SaslFailed("there are no delegation tokens here")
        self.name = unescaped(name)
        self.tenant = tenant_asked_for(unescaped(authorization.removeprefix(b"a=").decode()), self.name)
        self._gs2 = gs2_flag + b"," + authorization + b","
        self._nonce = nonce + self._nonce
        self._verifier = self._find(self.name)
        salt = base64.b64encode(self._verifier.salt).decode()
        reply = f"r={self._nonce},s={salt},i={self._verifier.iterations}".encode()
        self._messages = bare + b"," + reply
        return reply

    def _final(self, verifier: Verifier, data: bytes) -> bytes:
        without_proof, comma, said = data.rpartition(b",p=")
        fields = _fields(without_proof)
        proof = _decoded(said)
        is_ours = comma and fields.get("r") == self._nonce and _decoded(fields.get("c", "").encode()) == self._gs2
        if not is_ours:
            raise SaslFailed("this is no last message of this exchange")
        self._messages += b"," + without_proof
        signature = mac(self._mechanism, verifier.stored_key, self._messages)
        if len(proof) != len(signature):
            raise SaslFailed(WRONG)
        client_key = bytes(a ^ b for a, b in zip(proof, signature))
        stored_key = hashlib.new(self._mechanism.hash_name, client_key).digest()
        if not hmac.compare_digest(stored_key, verifier.stored_key):
            raise SaslFailed(WRONG)
        self.is_done = True
        return b"v=" + base64.b64encode(mac(self._mechanism, verifier.server_key, self._messages))


class ScramClient:
    def __init__(self, mechanism: Mechanism, name: str, password: str, nonce: str, tenant: str = "") -> None:
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce
        self._bare = f"n={escaped(name)},r={nonce}"
        acts_for = authorization_of(tenant)
        self._gs2 = f"n,a={escaped(acts_for)}," if acts_for else "n,,"
        self._signature = b""
        self.is_done = False
        """The server has shown that it knows the password too."""

    def first(self) -> bytes:
        return f"{self._gs2}{self._bare}".encode()

    def step(self, data: bytes) -> bytes:
        if self._signature:
            self._check(data)
            return b""
        fields = _fields(data)
        nonce, salt, iterations = fields.get("r", ""), _decoded(fields.get("s", "").encode()), fields.get("i", "")
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce) or not salt or not iterations.isdigit():
            raise SaslFailed("the server's first message is not one of this exchange")
        if not ITERATIONS_MIN <= int(iterations) <= CLIENT_ITERATIONS_MAX:
            raise SaslFailed(f"the server wants {iterations} iterations")
        salted = salted_password(self._mechanism, self._password, salt, int(iterations))
        verifier = Verifier.of_salted(self._mechanism, salted, salt, int(iterations))
        without_proof = f"c={base64.b64encode(self._gs2.encode()).decode()},r={nonce}"
        messages = ",".join((self._bare, data.decode(), without_proof)).encode()
        signature = mac(self._mechanism, verifier.stored_key, messages)
        client_key = mac(self._mechanism, salted, b"Client Key")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature))).decode()
        self._signature = mac(self._mechanism, verifier.server_key, messages)
        return f"{without_proof},p={proof}".encode()

    def _check(self, data: bytes) -> None:
        said = _decoded(data.removeprefix(b"v="))
        if not data.startswith(b"v=") or not hmac.compare_digest(said, self._signature):
            raise SaslFailed("the server does not know the password")
        self.is_done = True


WRONG = "the user or the password is wrong"


def escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def unescaped(name: str) -> str:
    parts = name.split("=")
    if any(not part.startswith(("2C", "3D")) for part in parts[1:]):
        raise SaslFailed("the name of the user is not escaped as SCRAM does")
    return parts[0] + "".join(("," if part.startswith("2C") else "=") + part[2:] for part in parts[1:])


def _fields(data: bytes) -> dict[str, str]:
    try:
        return {key: value for key, _, value in (each.partition("=") for each in data.decode().split(","))}
    except UnicodeDecodeError:
        raise SaslFailed("this is no text") from None


def _decoded(data: bytes) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise SaslFailed("this is not in base64") from None

"""What a server keeps of a password to check it by (SCRAM, RFC 5802): neither the password nor anything that is as
good as it for whoever steals it.
"""

import hashlib
import hmac
from enum import StrEnum
from typing import NamedTuple

import msgspec

from goqueue.model.secret import hides

ITERATIONS = 16_384
ITERATIONS_MIN, ITERATIONS_MAX = 4_096, 16_384
"""Kafka's limits: a number of a stranger's choice must not cost the server whatever they like."""
SALT_BYTES = 24


class Mechanism(StrEnum):
    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def hash_name(self) -> str:
        return "sha256" if self is Mechanism.SHA_256 else "sha512"


@hides("salt", "stored_key", "server_key")
class Verifier(msgspec.Struct, array_like=True, frozen=True):
    """What a server keeps of a password."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of_password(cls, mechanism: Mechanism, password: str, salt: bytes, iterations: int = ITERATIONS) -> "Verifier":
        return cls.of_salted(mechanism, salted_password(mechanism, password, salt, iterations), salt, iterations)

    @classmethod
    def of_salted(cls, mechanism: Mechanism, salted: bytes, salt: bytes, iterations: int) -> "Verifier":
        client_key = mac(mechanism, salted, b"Client Key")
        stored_key = hashlib.new(mechanism.hash_name, client_key).digest()
        return cls(salt, iterations, stored_key, mac(mechanism, salted, b"Server Key"))

    def is_password(self, mechanism: Mechanism, password: str) -> bool:
        """Slow on purpose."""
        other = Verifier.of_password(mechanism, password, self.salt, self.iterations)
        return hmac.compare_digest(other.stored_key, self.stored_key)


@hides("salt", "password")
class Salted(NamedTuple):
    """A password as Kafka's AlterUserScramCredentials brings it."""

    salt: bytes
    iterations: int
    password: bytes


def salted_password(mechanism: Mechanism, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def mac(mechanism: Mechanism, key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, mechanism.hash_name)

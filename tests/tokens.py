"""An identity provider for tests: keys, the set of them that it publishes, and tokens that it signs."""

import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from goqueue.broker.accounts.token_keys import TokenKeys
from goqueue.broker.accounts.tokens import TokenRules, Tokens
from goqueue.runtime.aside import Aside, at_once

ISSUER, AUDIENCE = "https://login.example.org/realm", "goqueue"
RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()
KEYS: dict[str, tuple[str, Any]] = {"r": ("RS256", RSA_KEY), "e": ("ES256", EC_KEY), "d": ("EdDSA", ED_KEY)}


def public(key: Any, key_id: str | None, **more: Any) -> dict[str, Any]:
    kind = (
        RSAAlgorithm if hasattr(key, "decrypt") else OKPAlgorithm if hasattr(key, "private_bytes_raw") else ECAlgorithm
    )
    said: dict[str, Any] = kind.to_jwk(key.public_key(), as_dict=True)
    return said | ({} if key_id is None else {"kid": key_id}) | more


def jwks(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": list(keys)}).encode()


ALL_KEYS = jwks(*(public(key, key_id) for key_id, (_, key) in KEYS.items()))


def token(now_ms: int, *, by: str = "r", alg: str = "", header: dict[str, Any] | None = None, **claims: Any) -> str:
    """What is None is left out."""
    algorithm, key = KEYS[by]
    seconds = now_ms // 1000
    said = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": seconds, "exp": seconds + 300} | claims
    said = {name: value for name, value in said.items() if value is not None}
    return jwt.encode(said, key, alg or algorithm, headers={"kid": by} if header is None else header)


def signed(claims: dict[str, Any], by: str) -> str:
    """These claims and no others."""
    algorithm, key = KEYS[by]
    return jwt.encode(claims, key, algorithm, headers={"kid": by})


def tokens(clock: Any, fetch: Any = lambda: ALL_KEYS, aside: Aside = at_once, **rules: Any) -> Tokens:
    keys = TokenKeys(fetch, aside, clock)
    found = Tokens(TokenRules(ISSUER, AUDIENCE, **rules), keys, clock)
    keys.start()
    return found

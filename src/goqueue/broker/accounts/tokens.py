"""Tokens of an identity provider (JWT), checked: nothing is believed before its signature is."""

import hashlib
import hmac
import math
from dataclasses import dataclass
from typing import Any

import jwt
from jwt.exceptions import InvalidAudienceError, InvalidIssuerError, PyJWTError

from goqueue.broker.accounts.token_keys import ALGORITHMS, TokenKey, TokenKeys
from goqueue.model.access import ROLES
from goqueue.model.accounts import USER, check_foreign_name
from goqueue.model.codes import Code
from goqueue.model.credentials import NotAuthenticated, OnLogin, Principal
from goqueue.model.refusal import Refused
from goqueue.model.tenancy import MARK, check_tenant_id, full
from goqueue.runtime.clock import Clock

TOKEN_BYTES_MAX = 16 * 1024
SKEW_MS = 30_000
"""How far the clock of the issuer may be off."""
REMEMBERED_MAX = 1000
EXPIRES_MS_MAX = 1 << 53
UNSIGNED = "the token is not signed by a key of its issuer"


@dataclass(frozen=True)
class TokenRules:
    issuer: str
    audience: str
    principal_claim: str = "sub"
    roles_claim: str | None = None
    tenant_claim: str | None = None


class Tokens:
    def __init__(self, rules: TokenRules, keys: TokenKeys, clock: Clock) -> None:
        self._rules = rules
        self._keys = keys
        self._clock = clock
        self._remembered: dict[bytes, tuple[Principal, int]] = {}
        """Tokens that were right, by their hash, and from when on: a signature takes longer than all else of a small
        request, and clients send the same token each time."""
        keys.on_keys = self._remembered.clear

    def check_id(self, text: str, client_id: str, nonce: str, on_login: OnLogin) -> None:
        """An ID token that the issuer gave for a code. It was made for this client, and for what was begun with this
        nonce."""

        def verify() -> None:
            try:
                key = self._keys.find(key_id, algorithm)
                if key is None:
                    raise NotAuthenticated(UNSIGNED)
                claims = self._claims(text, algorithm, key, client_id)
                if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
                    raise NotAuthenticated("the token is the answer to another log-in")
                if claims.get("azp", client_id) != client_id:
                    raise NotAuthenticated("the token is for another client")
                principal = self._principal(claims)
                self._check_time(_time(claims, "nbf", 0), principal.expires_ms)
            except NotAuthenticated as error:
                on_login(error)
            else:
                on_login(principal)

        try:
            algorithm, key_id = _header(text)
        except NotAuthenticated as error:
            on_login(error)
            return
        if self._keys.find(key_id, algorithm) is None:
            self._keys.look_again(verify)
        else:
            verify()

    def check(self, text: str, on_login: OnLogin) -> None:
        """Told now, or when keys were fetched for it."""
        digest = hashlib.sha256(text.encode()).digest()
        try:
            remembered = self._remembered.get(digest)
            if remembered is not None:
                principal, begins_ms = remembered
                self._check_time(begins_ms, principal.expires_ms)
                on_login(principal)
                return
            algorithm, key_id = _header(text)
        except NotAuthenticated as error:
            on_login(error)
            return
        key = self._keys.find(key_id, algorithm)
        if key is None:
            self._keys.look_again(lambda: self._verify(text, digest, algorithm, key_id, on_login))
        else:
            self._verify(text, digest, algorithm, key_id, on_login)

    def _verify(self, text: str, digest: bytes, algorithm: str, key_id: str | None, on_login: OnLogin) -> None:
        key = self._keys.find(key_id, algorithm)
        try:
            if key is None:
                raise NotAuthenticated(UNSIGNED)
            claims = self._claims(text, algorithm, key, self._rules.audience)
            begins_ms, principal = _time(claims, "nbf", 0), self._principal(claims)
            self._check_time(begins_ms, principal.expires_ms)
        except NotAuthenticated as error:
            on_login(error)
            return
        if len(self._remembered) >= REMEMBERED_MAX:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[digest] = principal, begins_ms
        on_login(principal)

    def _claims(self, text: str, algorithm: str, key: TokenKey, audience: str) -> dict[str, Any]:
        """Times are looked at by our own clock."""
        options: Any = {
            "require": ["exp", "iss", "aud"],
            "verify_exp": False,
            "verify_nbf": False,
            "verify_iat": False,
        }
        rules = self._rules
        try:
            return jwt.decode(text, key.public, [algorithm], options=options, audience=audience, issuer=rules.issuer)
        except InvalidIssuerError:
            raise NotAuthenticated("the token is of another issuer") from None
        except InvalidAudienceError:
            raise NotAuthenticated("the token is for another audience") from None
        except jwt.MissingRequiredClaimError as error:
            raise NotAuthenticated(f"the token lacks the claim {error.claim!r}") from None
        except (PyJWTError, ValueError, TypeError):
            raise NotAuthenticated(UNSIGNED) from None

    def _check_time(self, begins_ms: int, expires_ms: int) -> None:
        now_ms = self._clock.now_ms()
        if now_ms >= expires_ms:
            raise NotAuthenticated("the token has expired")
        if now_ms < begins_ms - SKEW_MS:
            raise NotAuthenticated("the token is not valid yet")

    def _principal(self, claims: dict[str, Any]) -> Principal:
        rules = self._rules
        name = _claim(claims, rules.principal_claim)
        try:
            check_foreign_name(name if isinstance(name, str) else "")
            if MARK in name:  # it would be somebody of another tenant
                raise Refused(Code.UNACCEPTABLE_CREDENTIAL, f"it has a {MARK}")
        except Refused as error:
            raise NotAuthenticated(f"the token's claim {rules.principal_claim!r} is no name: {error}") from None
        roles = () if rules.roles_claim is None else _roles(_claim(claims, rules.roles_claim))
        if rules.tenant_claim is not None:
            name = full(_tenant(_claim(claims, rules.tenant_claim), rules.tenant_claim), name)
        return Principal(f"{USER}:{name}", _time(claims, "exp", None) + SKEW_MS, roles)


def _tenant(said: Any, claim: str) -> str:
    """Who says none is refused, and does not become somebody of the default tenant."""
    try:
        check_tenant_id(said if isinstance(said, str) else "")
    except Refused as error:
        raise NotAuthenticated(f"the token's claim {claim!r} names no tenant: {error}") from None
    return str(said)


def _header(text: str) -> tuple[str, str | None]:
    """The algorithm and the key: said by whoever made it, and no more than a hint."""
    if len(text) > TOKEN_BYTES_MAX:
        raise NotAuthenticated(f"a token has at most {TOKEN_BYTES_MAX} bytes")
    try:
        header = jwt.get_unverified_header(text)
    except (PyJWTError, ValueError, RecursionError):
        raise NotAuthenticated("this is no token") from None
    algorithm, key_id = header.get("alg"), header.get("kid")
    if algorithm not in ALGORITHMS:
        raise NotAuthenticated(f"tokens are signed by one of {', '.join(ALGORITHMS)}")
    return algorithm, key_id if isinstance(key_id, str) else None


def _time(claims: dict[str, Any], name: str, default: int | None) -> int:
    """In milliseconds."""
    seconds = claims.get(name, default)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        raise NotAuthenticated(f"the token's claim {name!r} is no time")
    return min(max(0, int(seconds * 1000)), EXPIRES_MS_MAX)


def _claim(claims: dict[str, Any], name: str) -> Any:
    """By its name; or a part of one, as Keycloak has `realm_access.roles`."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _roles(said: Any) -> tuple[str, ...]:
    """Those that there are here: issuers have others for others."""
    words = said.split() if isinstance(said, str) else said if isinstance(said, list) else ()
    known = dict.fromkeys("viewer" if word == "readonly" else word for word in words if isinstance(word, str))
    return tuple(sorted(word for word in known if word in ROLES))

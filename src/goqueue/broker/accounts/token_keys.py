"""The keys that an issuer signs its tokens with (JWKS, RFC 7517). They are fetched aside, and the last good ones are
used while no others can be had.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from goqueue.model.errors import GoQueueError
from goqueue.runtime.aside import Aside
from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.logs import get_logger

REFRESH_MS = 5 * 60_000
ASK_AGAIN_S = 60.0
"""A token names a key that nobody knows: so often at most others are fetched for one. Tokens are cheap to make up."""
HOLD_S = 24 * 60 * 60.0
"""How long the last good keys are used."""
KEYS_MAX = 100
RSA_BITS_MIN = 2048

ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")
"""Of public keys only: whoever knows what a node checks by cannot sign."""

Fetch = Callable[[], bytes]
"""In a thread. OSError or GoQueueError: not now."""

events = get_logger("node")


class BadKeys(GoQueueError):
    """These are no keys that tokens can be checked by."""


class TokenKey(NamedTuple):
    key_id: str | None
    public: Any
    algorithms: tuple[str, ...]


class _KeySet(msgspec.Struct):
    keys: list[dict[str, Any]]


def read_keys(text: bytes) -> list[TokenKey]:
    """Those that can be used; a set may have others beside them."""
    try:
        stored = msgspec.json.decode(text, type=_KeySet).keys
    except msgspec.MsgspecError as error:
        raise BadKeys(f"this is no set of keys: {error}") from None
    found = [key for each in stored[:KEYS_MAX] if (key := _key(each)) is not None]
    if not found:
        raise BadKeys(f"there is no public key for {', '.join(ALGORITHMS)} among them")
    return found


def _key(said: dict[str, Any]) -> TokenKey | None:
    if said.get("use", "sig") != "sig" or "d" in said or "k" in said:
        return None  # not for signatures, or a secret, which must not be here
    try:
        public = PyJWK(said).key
    except (PyJWTError, ValueError, TypeError, KeyError):
        return None
    algorithms = _algorithms(public)
    if "alg" in said:
        algorithms = tuple(each for each in algorithms if each == said["alg"])
    key_id = said.get("kid")
    return TokenKey(key_id if isinstance(key_id, str) else None, public, algorithms) if algorithms else None


def _algorithms(public: object) -> tuple[str, ...]:
    if isinstance(public, RSAPublicKey):
        return ("RS256", "PS256") if public.key_size >= RSA_BITS_MIN else ()
    if isinstance(public, EllipticCurvePublicKey):
        return ("ES256",) if isinstance(public.curve, SECP256R1) else ()
    return ("EdDSA",) if isinstance(public, Ed25519PublicKey) else ()


class TokenKeys:
    def __init__(self, fetch: Fetch, aside: Aside, clock: Clock) -> None:
        self._fetch = fetch
        self._aside = aside
        self._clock = clock
        self._keys: list[TokenKey] = []
        self._fetched_s = 0.0
        self._asked_s: float | None = None
        """When they were last fetched for a key that nobody knew."""
        self._waiting: list[Callable[[], None]] = []
        self._is_fetching = False
        self._timer: Timer | None = None
        self._is_over = False
        self.on_keys: Callable[[], None] = lambda: None
        """Called when they are others, or fewer."""

    def start(self) -> None:
        self._refresh()

    def stop(self) -> None:
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()

    @property
    def _are_old(self) -> bool:
        return self._clock.monotonic_s() - self._fetched_s > HOLD_S

    def find(self, key_id: str | None, algorithm: str) -> TokenKey | None:
        """A token that names no key is taken where there is only one that it may mean."""
        if self._are_old:
            return None
        found = [each for each in self._keys if algorithm in each.algorithms and key_id in (each.key_id, None)]
        return found[0] if len(found) == 1 or (found and key_id is not None) else None

    def look_again(self, then: Callable[[], None]) -> None:
        """`then`: called when there may be others, or at once if it is too early to ask."""
        now_s = self._clock.monotonic_s()
        if self._is_over or (self._asked_s is not None and now_s - self._asked_s < ASK_AGAIN_S):
            if self._is_fetching:
                self._waiting.append(then)
            else:
                then()
            return
        self._asked_s = now_s
        self._waiting.append(then)
        self._refresh()

    def _refresh(self) -> None:
        if self._is_fetching:
            return
        self._is_fetching = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        made: list[TokenKey] = []

        def work() -> None:
            made.extend(read_keys(self._fetch()))

        self._aside(work, lambda error: self._fetched(made, error))

    def _fetched(self, made: list[TokenKey], error: BaseException | None) -> None:
        self._is_fetching = False
        if error is None:
            self._keys, self._fetched_s = made, self._clock.monotonic_s()
            self.on_keys()
        else:
            if self._are_old:
                self.on_keys()
            events.warning("keys of the issuer not read; the last ones are used for a day", reason=str(error))
        if not self._is_over:
            self._timer = self._clock.call_after(REFRESH_MS, self._refresh)
        waiting, self._waiting = self._waiting, []
        call_each(waiting)

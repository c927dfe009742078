"""Credentials, checked: whoever passes is a principal. A failure says the same whether or not there is such a user."""

import hmac
from collections.abc import Callable
from typing import Any, Protocol

from goqueue.broker.accounts.accounts import Accounts, digest_of
from goqueue.broker.accounts.guesses import Guesses
from goqueue.broker.accounts.sessions import Sessions
from goqueue.model.accounts import USER, ApiKey, KeySecret, KeyText, is_key_id, parse_key
from goqueue.model.credentials import NotAuthenticated, OnLogin, Principal, WrongSignature
from goqueue.model.scram import ITERATIONS, SALT_BYTES, Mechanism, Verifier
from goqueue.model.secret import Secret
from goqueue.ports.dice import Dice
from goqueue.runtime.clock import Clock

WAITING_MAX = 100
"""Passwords that wait to be checked."""
REMEMBERED_MAX = 10_000
WRONG_WORDS = "the credentials are wrong"
DIGEST_BYTES = 32
DELAY_MS = (100.0, 200.0)
"""A failure is told after so long: dice say when."""


class CodeFlow(Protocol):
    """Of people who log in at an identity provider: `code_flow.CodeFlow`."""

    def begin(self, redirect_uri: str, back_to: str) -> tuple[str, Secret[str]]: ...

    def begun(self, kept: Secret[str], state: str, issuer: str | None) -> Any: ...

    def finish(self, begun: Any, code: str, host: str, on_login: OnLogin) -> None: ...


class TokenCheck(Protocol):
    """Of tokens of an identity provider."""

    def check(self, text: str, on_login: OnLogin) -> None: ...


class Logins:
    def __init__(
        self, accounts: Accounts, clock: Clock, dice: Dice, secret: bytes, tokens: TokenCheck | None = None
    ) -> None:
        """`secret`: of the cluster, so that all nodes say the same of somebody whom nobody knows. `tokens`: where some
        are taken."""
        self.tokens = tokens
        self.code_flow: CodeFlow | None = None
        """Where people may log in at an identity provider."""
        self._secret = secret
        self._accounts = accounts
        self._clock = clock
        self._dice = dice
        self._guesses = Guesses(clock.monotonic_s)
        self.sessions = Sessions(accounts, clock, dice, secret)
        self._process_key = dice.randbytes(DIGEST_BYTES)
        self._remembered: dict[bytes, None] = {}
        """Passwords that were right, as MACs: checking one takes milliseconds, and some clients send it each time."""
        self._waiting = 0
        self.failures = 0
        self.on_failed: Callable[[str, str], None] = lambda host, name: None
        """Called with the address and the name of who was not believed."""

    @property
    def delay_ms(self) -> int:
        """Until a failure is told."""
        return int(self._dice.uniform(*DELAY_MS))

    def key(self, text: str, host: str) -> Principal:
        """`gqk_<id>_<secret>`."""
        given = parse_key(text)
        if given is None:
            self.failures += 1
            raise NotAuthenticated(WRONG_WORDS)
        return self._key(given, host)

    def _key(self, given: KeyText, host: str) -> Principal:
        self.check_guesses(host, given.key_id)
        key, now_ms = self._accounts.image.keys.get(given.key_id), self._clock.now_ms()
        digest = digest_of(given.secret)
        found = None
        for secret in (KeySecret(bytes(DIGEST_BYTES)),) if key is None else key.secrets:
            if hmac.compare_digest(secret.digest, digest) and not (secret.ends_ms and now_ms >= secret.ends_ms):
                found = secret
        if key is None or found is None or key.is_over(now_ms):
            raise self.fail(host, given.key_id)
        self._accounts.key_uses.note(key.key_id, now_ms, self._accounts.image.keys)
        return Principal(key.principal, _first_end(key, found))

    def bearer(self, text: str, host: str, on_login: OnLogin) -> None:
        """A key or a token. Told now or later. A token is signed, so there is nothing to guess."""
        if self.tokens is None or parse_key(text) is not None:
            try:
                on_login(self.key(text, host))
            except NotAuthenticated as error:
                on_login(error)
            return

        def checked(found: Principal | NotAuthenticated) -> None:
            if isinstance(found, NotAuthenticated):
                self.failures += 1
                self.on_failed(host, "a token")
            on_login(found)

        self.tokens.check(text, checked)

    def signed(self, key_id: str, host: str, is_signed: Callable[[Secret[str]], bool]) -> Principal:
        """By the signature of a request: `is_signed` is asked of each secret that may be used."""
        self.check_guesses(host, key_id)
        key, now_ms = self._accounts.image.keys.get(key_id), self._clock.now_ms()
        if key is None or key.is_over(now_ms):
            raise self.fail(host, key_id)
        if not key.is_for_sqs:
            raise WrongSignature(
                "this key was not made for SQS: its secret is not kept, so no signature can be checked"
            )
        for secret in key.secrets:
            is_over = secret.ends_ms and now_ms >= secret.ends_ms
            if secret.sealed and not is_over and is_signed(self._accounts.signing_secret(key, secret)):
                self._accounts.key_uses.note(key_id, now_ms, self._accounts.image.keys)
                return Principal(key.principal, _first_end(key, secret))
        self.fail(host, key_id)
        raise WrongSignature("the signature does not match the one that this node has made")

    def password(self, name: str, password: str, host: str, on_login: OnLogin) -> None:
        """Of a user; or the id and the secret of a key. Told now or later."""
        try:
            if is_key_id(name):
                on_login(self.key(password if parse_key(password) else f"gqk_{name}_{password}", host))
                return
            self.check_guesses(host, name)
        except NotAuthenticated as error:
            on_login(error)
            return
        mac = self._mac(name, password)
        if mac in self._remembered:
            on_login(Principal(f"{USER}:{name}"))
            return
        if self._waiting >= WAITING_MAX:
            on_login(NotAuthenticated("too many passwords wait to be checked; try again later"))
            return
        verifier = self.verifier(name, Mechanism.SHA_256)
        is_right = False

        def work() -> None:
            nonlocal is_right
            is_right = verifier.is_password(Mechanism.SHA_256, password)

        def done(error: BaseException | None) -> None:
            self._waiting -= 1
            if error is None and is_right and hmac.compare_digest(self._mac(name, password), mac):
                self._remember(mac)
                on_login(Principal(f"{USER}:{name}"))
            else:
                on_login(self.fail(host, name))

        self._waiting += 1
        self._accounts.aside(work, done)

    def verifier(self, name: str, mechanism: Mechanism) -> Verifier:
        """Of somebody unknown it is one that no password fits: the same at each try, and as much work."""
        found = self._accounts.verifier(name, mechanism)
        if found is not None:
            return found
        size = 32 if mechanism is Mechanism.SHA_256 else 64
        salt = hmac.digest(self._secret, b"salt " + name.encode(), "sha256")[:SALT_BYTES]
        return Verifier(salt, ITERATIONS, self._dice.randbytes(size), self._dice.randbytes(size))

    def check_guesses(self, host: str, name: str) -> None:
        if not self._guesses.may(host, name):
            self.failures += 1
            raise NotAuthenticated("too many logins have failed; try again later")

    def fail(self, host: str, name: str) -> NotAuthenticated:
        self.failures += 1
        self.on_failed(host, name)
        self._guesses.failed(host, name)
        return NotAuthenticated(WRONG_WORDS)

    def _mac(self, name: str, password: str) -> bytes:
        """It changes with what the password is checked by."""
        user = self._accounts.image.users.get(name)
        stored = b"" if user is None else user.scram.get(Mechanism.SHA_256, b"")
        parts = (each for word in (name.encode(), password.encode(), stored) for each in (b"%d:" % len(word), word))
        return hmac.digest(self._process_key, b"".join(parts), "sha256")

    def _remember(self, mac: bytes) -> None:
        if len(self._remembered) >= REMEMBERED_MAX:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[mac] = None


def _first_end(key: ApiKey, secret: KeySecret) -> int:
    ends = [each for each in (key.expires_ms, secret.ends_ms) if each]
    return min(ends, default=0)

"""Users, API keys, rules and quotas as an admin manages them."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from goqueue.broker.accounts.key_uses import KeyUses
from goqueue.broker.accounts.rekeying import key_place, resealed, user_place
from goqueue.broker.accounts.sealing import CannotUnseal, Sealing
from goqueue.machines.account_result import AccountResult
from goqueue.machines.accounts import (
    ChangeUser,
    CreateKey,
    CreateRules,
    DeleteKey,
    DeleteRules,
    DeleteUser,
    RotateKey,
)
from goqueue.machines.ended_sessions import EndSession
from goqueue.machines.machine import Command
from goqueue.machines.quotas import DeleteQuota, SetQuota
from goqueue.model.access import Rule
from goqueue.model.accounts import (
    METADATA_MAX,
    AccessImage,
    ApiKey,
    KeySecret,
    KeyText,
    check_name,
    check_roles,
)
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.quotas import check_entity, check_limits
from goqueue.model.refusal import Refused
from goqueue.model.scram import ITERATIONS, ITERATIONS_MAX, ITERATIONS_MIN, SALT_BYTES, Mechanism, Salted, Verifier
from goqueue.model.secret import Secret
from goqueue.model.tenancy import DEFAULT_TENANT
from goqueue.ports.dice import Dice
from goqueue.runtime.aside import Aside, at_once
from goqueue.runtime.clock import Clock

SECRET_BYTES = 32
KEY_ID_BYTES = 8
RULES_PER_STEP = 100
"""etcd takes 128 operations in a transaction."""
PASSWORD_BYTES_MAX = 1024
OVERLAP_MS = 24 * 60 * 60 * 1000
"""How long the secret before a new one is still taken."""

NO_MASTER = "a key for SQS keeps its secret, sealed: this node needs master_key_file for that"

R = TypeVar("R")
OnReply: TypeAlias = Callable[[R | GoQueueError], None]


class NewKey(NamedTuple):
    key: ApiKey
    text: KeyText
    """Told once, and stored nowhere."""


class AccountStore(Protocol):
    on_change: list[Callable[[], None]]

    @property
    def access(self) -> AccessImage: ...

    def submit(self, command: Command[R], on_reply: OnReply[R]) -> None: ...


class Accounts:
    def __init__(self, store: AccountStore, clock: Clock, dice: Dice, sealing: Sealing | None = None) -> None:
        self._store = store
        self._clock = clock
        self._dice = dice
        self.sealing = sealing or Sealing(dice)
        self.aside: Aside = at_once
        """Where passwords are worked on, which is slow on purpose."""
        self.key_uses = KeyUses(clock.now_ms())

    @property
    def image(self) -> AccessImage:
        return self._store.access

    @property
    def on_change(self) -> list[Callable[[], None]]:
        """Called when `image` may be another."""
        return self._store.on_change

    # -- users

    def create_user(self, name: str, password: str, roles: Sequence[str], on_reply: OnReply[None]) -> None:
        self._set_password(name, password, check_roles(tuple(roles)), on_reply, is_new=True)

    def change_user(
        self, name: str, password: str | None, roles: Sequence[str] | None, on_reply: OnReply[None]
    ) -> None:
        checked = None if roles is None else check_roles(tuple(roles))
        if password is None:
            self._submit(ChangeUser(name, {}, checked, is_new=False), None, on_reply)
        else:
            self._set_password(name, password, checked, on_reply, is_new=False)

    def _set_password(
        self, name: str, password: str, roles: tuple[str, ...] | None, on_reply: OnReply[None], *, is_new: bool
    ) -> None:
        check_name("user", name)
        if not password or len(password.encode()) > PASSWORD_BYTES_MAX or "\0" in password:
            raise Refused(Code.UNACCEPTABLE_CREDENTIAL, f"a password has 1 to {PASSWORD_BYTES_MAX} bytes")
        salts = {mechanism: self._dice.randbytes(SALT_BYTES) for mechanism in Mechanism}
        made: dict[Mechanism, Verifier] = {}

        def work() -> None:
            for mechanism, salt in salts.items():
                made[mechanism] = Verifier.of_password(mechanism, password, salt, ITERATIONS)

        def done(error: BaseException | None) -> None:
            if error is not None:
                on_reply(Refused(Code.REQUEST_TIMED_OUT, str(error)))
                return
            sealed = {str(mechanism): self._sealed(name, mechanism, each) for mechanism, each in made.items()}
            self._submit(ChangeUser(name, sealed, roles, self._clock.now_ms(), is_new), None, on_reply)

        self.aside(work, done)

    def alter_scram(self, name: str, changes: Mapping[Mechanism, Salted | None], on_reply: OnReply[None]) -> None:
        """None: this mechanism is taken away."""
        check_name("user", name)
        sealed: dict[str, bytes | None] = {}
        known = self.image.users.get(name)
        for mechanism, salted in changes.items():
            if salted is None:
                if known is None or mechanism not in known.scram:
                    raise Refused(Code.RESOURCE_NOT_FOUND, f"{name!r} has no {mechanism}")
                sealed[mechanism] = None
                continue
            if not ITERATIONS_MIN <= salted.iterations <= ITERATIONS_MAX or not salted.salt or not salted.password:
                words = f"{ITERATIONS_MIN} to {ITERATIONS_MAX} iterations, a salt and a salted password are needed"
                raise Refused(Code.UNACCEPTABLE_CREDENTIAL, words)
            verifier = Verifier.of_salted(mechanism, salted.password, salted.salt, salted.iterations)
            sealed[mechanism] = self._sealed(name, mechanism, verifier)
        self._submit(ChangeUser(name, sealed, None, self._clock.now_ms()), None, on_reply)

    def delete_user(self, name: str, on_reply: OnReply[None]) -> None:
        self._submit(DeleteUser(name), None, on_reply)

    def verifier(self, name: str, mechanism: Mechanism) -> Verifier | None:
        """CannotUnseal: this node lacks the master key."""
        user = self.image.users.get(name)
        sealed = None if user is None else user.scram.get(mechanism)
        if sealed is None:
            return None
        return msgspec.msgpack.decode(self.sealing.open(user_place(name, mechanism), sealed), type=Verifier)

    def _sealed(self, name: str, mechanism: Mechanism, verifier: Verifier) -> bytes:
        return self.sealing.seal(user_place(name, mechanism), msgspec.msgpack.encode(verifier))

    def end_session(self, principal: str, session: str, ends_ms: int, on_reply: OnReply[None]) -> None:
        """By the digest of its id; empty: all of this principal."""
        self._submit(EndSession(principal, session, ends_ms, self._clock.now_ms()), None, on_reply)

    # -- keys

    def create_key(
        self,
        name: str,
        roles: Sequence[str],
        expires_ms: int,
        metadata: Mapping[str, str],
        on_reply: OnReply[NewKey],
        *,
        is_for_sqs: bool = False,
        tenant: str = DEFAULT_TENANT,
    ) -> None:
        check_name("key", name)
        if is_for_sqs and not self.sealing.has_master:
            raise Refused(Code.INVALID_REQUEST, NO_MASTER)
        if len(metadata) > METADATA_MAX:
            raise Refused(Code.INVALID_REQUEST, f"a key has at most {METADATA_MAX} entries of metadata")
        made = self.new_key(name, check_roles(tuple(roles)), expires_ms, metadata, is_for_sqs=is_for_sqs)
        made = made._replace(key=msgspec.structs.replace(made.key, tenant=tenant))
        self._submit(CreateKey(made.key), made, on_reply)

    def new_key(
        self,
        name: str,
        roles: tuple[str, ...],
        expires_ms: int,
        metadata: Mapping[str, str] | None = None,
        *,
        is_for_sqs: bool = False,
    ) -> NewKey:
        text = KeyText(f"k{self._dice.randbytes(KEY_ID_BYTES).hex()}", Secret(self._dice.randbytes(SECRET_BYTES).hex()))
        secrets = (KeySecret(digest_of(text.secret), sealed=self._sealed_secret(text) if is_for_sqs else b""),)
        key = ApiKey(text.key_id, name, secrets, roles, self._clock.now_ms(), expires_ms, dict(metadata or {}))
        return NewKey(key, text)

    def _sealed_secret(self, text: KeyText) -> bytes:
        return self.sealing.seal(key_place(text.key_id), text.secret.reveal().encode())

    def signing_secret(self, key: ApiKey, secret: KeySecret) -> Secret[str]:
        """What its owner signs with. CannotUnseal: this node lacks the master key."""
        return Secret(self.sealing.open(key_place(key.key_id), secret.sealed).decode())

    def store_key(self, key: ApiKey, on_reply: OnReply[ApiKey]) -> None:
        """One whose secret was chosen elsewhere: the bootstrap key."""
        self._submit(CreateKey(key), key, on_reply)

    def rotate_key(self, key_id: str, overlap_ms: int, on_reply: OnReply[NewKey]) -> None:
        text = KeyText(key_id, Secret(self._dice.randbytes(SECRET_BYTES).hex()))
        now_ms, before = self._clock.now_ms(), self.image.keys.get(key_id)
        is_for_sqs = before is not None and before.is_for_sqs
        if is_for_sqs and not self.sealing.has_master:
            raise Refused(Code.INVALID_REQUEST, NO_MASTER)
        sealed = self._sealed_secret(text) if is_for_sqs else b""

        def done(error: GoQueueError | None) -> None:
            key = self.image.keys.get(key_id)
            if error is not None:
                on_reply(error)
            elif key is None:  # deleted by somebody else, meanwhile
                on_reply(Refused(Code.RESOURCE_NOT_FOUND, f"there is no key {key_id!r}"))
            else:
                on_reply(NewKey(key, text))

        self._submit(RotateKey(key_id, digest_of(text.secret), now_ms, overlap_ms, sealed), None, done)

    def delete_key(self, key_id: str, on_reply: OnReply[None]) -> None:
        self._submit(DeleteKey(key_id), None, on_reply)

    # -- the master key

    def rekey(self, on_reply: OnReply[int]) -> None:
        """Seal everything under the master key that is in use; tells how many accounts that were."""
        if not self.sealing.has_master:
            raise Refused(Code.INVALID_REQUEST, "this node has no master key: see the setting master_key_file")
        try:
            changes = list(resealed(self.image, self.sealing))
        except CannotUnseal as error:
            words = f"{error}; add the key that it was sealed under to master_key_file, below the new one"
            raise Refused(Code.INVALID_REQUEST, words) from None

        def done(error: GoQueueError | None) -> None:
            on_reply(error or len(changes))

        self._steps(changes, done)

    # -- rules

    def new_rule_id(self) -> str:
        return f"r{self._dice.randbytes(KEY_ID_BYTES).hex()}"

    def create_rules(self, rules: Sequence[Rule], on_reply: OnReply[None]) -> None:
        self._steps([CreateRules(tuple(some)) for some in _some(rules)], on_reply)

    def delete_rules(self, rule_ids: Sequence[str], on_reply: OnReply[None]) -> None:
        self._steps([DeleteRules(tuple(some)) for some in _some(rule_ids)], on_reply)

    # -- quotas

    def set_quota(
        self,
        user: str | None,
        client_id: str | None,
        limits: Mapping[str, float | None],
        on_reply: OnReply[None],
        *,
        ip: str | None = None,
    ) -> None:
        """None as a limit: it is taken away."""
        check_entity(user, client_id, ip)
        check_limits(limits, ip)
        self._submit(SetQuota(user, client_id, dict(limits), ip), None, on_reply)

    def delete_quota(
        self, user: str | None, client_id: str | None, on_reply: OnReply[None], *, ip: str | None = None
    ) -> None:
        check_entity(user, client_id, ip)
        self._submit(DeleteQuota(user, client_id, ip), None, on_reply)

    def _steps(self, commands: Sequence[Command[AccountResult]], on_reply: OnReply[None]) -> None:
        if not commands:
            on_reply(None)
            return
        first, *others = commands

        def done(error: GoQueueError | None) -> None:
            if error is not None or not others:
                on_reply(error)
            else:
                self._steps(others, on_reply)

        self._submit(first, None, done)

    def _submit(self, command: Command[AccountResult], reply: R, on_reply: OnReply[R]) -> None:
        def done(result: AccountResult | GoQueueError) -> None:
            if isinstance(result, GoQueueError):
                on_reply(result)
            elif result.code:
                on_reply(Refused(result.code, result.message))
            else:
                on_reply(reply)

        self._store.submit(command, done)


def digest_of(secret: Secret[str]) -> bytes:
    return hashlib.sha256(bytes.fromhex(secret.reveal())).digest()


def _some(items: Sequence[R]) -> list[Sequence[R]]:
    return [items[at : at + RULES_PER_STEP] for at in range(0, len(items), RULES_PER_STEP)]

"""Users, API keys, rules, quotas and tenants, as the controller keeps them. What one command changes is stored in one
batch, so that "the bootstrap key ends when there is an admin" is one moment.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hmac import compare_digest
from types import MappingProxyType
from typing import ClassVar

import msgspec

from goqueue.machines.account_result import AccountResult
from goqueue.machines.ended_sessions import Ended, EndedFact, EndedForgotten, EndSession, SessionsEnded
from goqueue.machines.machine import Command, Fact
from goqueue.machines.quotas import QUOTA_COMMANDS, QuotaFact, QuotaForgotten, Quotas, QuotaStored, SetQuota
from goqueue.machines.tenant_commands import TENANT_COMMANDS
from goqueue.machines.tenants import TenantFact, Tenants
from goqueue.model.access import Rule
from goqueue.model.accounts import SECRETS_MAX, AccessImage, ApiKey, KeySecret, User
from goqueue.model.codes import Code
from goqueue.model.secret import hides
from goqueue.model.tenancy import MARK, TenantLimit, TenantStatus, tenant_said

USER_KEY, API_KEY, RULE_KEY = b"\0user/", b"\0key/", b"\0rule/"  # no topic can be called that
ACCOUNTS_MAX = 10_000
"""Of users, of keys and of rules each."""
ADMIN = "admin"


@hides("scram")
class ChangeUser(Command[AccountResult], frozen=True):
    """Set what a user's password is checked by, or roles. Without any mechanism left there is no user."""

    name: str
    scram: Mapping[str, bytes | None] = msgspec.field(default_factory=dict)
    """None: not by this mechanism any more."""
    roles: tuple[str, ...] | None = None
    """None: as they are."""
    created_ms: int = 0
    is_new: bool | None = None
    """True: there must be none of the name yet; False: there must be one."""


class DeleteUser(Command[AccountResult], frozen=True):
    name: str


class CreateKey(Command[AccountResult], frozen=True):
    key: ApiKey


@hides("digest", "sealed")
class RotateKey(Command[AccountResult], frozen=True):
    """Another secret; the one before ends a while later."""

    key_id: str
    digest: bytes
    now_ms: int
    overlap_ms: int
    sealed: bytes = b""


class DeleteKey(Command[AccountResult], frozen=True):
    key_id: str


class Reseal(Command[AccountResult], frozen=True):
    """The same account, sealed under another master key. One that is not as it was `before` stays as it is."""

    before: User | ApiKey
    after: User | ApiKey


class CreateRules(Command[AccountResult], frozen=True):
    """One that says the same as one that there is adds nothing."""

    rules: tuple[Rule, ...]


class DeleteRules(Command[AccountResult], frozen=True):
    rule_ids: tuple[str, ...]


ACCOUNT_COMMANDS = (
    *(ChangeUser, DeleteUser, CreateKey, RotateKey, DeleteKey, Reseal, CreateRules, DeleteRules),
    *QUOTA_COMMANDS,
    *TENANT_COMMANDS,
    EndSession,
)


class UserStored(Fact, frozen=True, tag="UserStored"):
    user: User

    def key(self) -> bytes:
        return USER_KEY + self.user.name.encode()


class UserForgotten(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    name: str

    def key(self) -> bytes:
        return USER_KEY + self.name.encode()


class KeyStored(Fact, frozen=True, tag="KeyStored"):
    api_key: ApiKey

    def key(self) -> bytes:
        return API_KEY + self.api_key.key_id.encode()


class KeyForgotten(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    key_id: str

    def key(self) -> bytes:
        return API_KEY + self.key_id.encode()


class RuleStored(Fact, frozen=True, tag="RuleStored"):
    rule: Rule

    def key(self) -> bytes:
        return RULE_KEY + self.rule.rule_id.encode()


class RuleForgotten(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    rule_id: str

    def key(self) -> bytes:
        return RULE_KEY + self.rule_id.encode()


AccountFact = (
    UserStored
    | UserForgotten
    | KeyStored
    | KeyForgotten
    | RuleStored
    | RuleForgotten
    | QuotaFact
    | TenantFact
    | EndedFact
)


class Accounts:
    def __init__(self) -> None:
        self._users: dict[str, User] = {}
        self._keys: dict[str, ApiKey] = {}
        self._rules: dict[str, Rule] = {}
        self._quotas = Quotas()
        self._tenants = Tenants()
        self._ended = Ended()

    def image(self, revision: int) -> AccessImage:
        users, keys, rules = dict(self._users), dict(self._keys), dict(self._rules)
        return AccessImage(
            revision,
            MappingProxyType(users),
            MappingProxyType(keys),
            MappingProxyType(rules),
            MappingProxyType(dict(self._quotas.by_id)),
            MappingProxyType(dict(self._tenants.by_id)),
            MappingProxyType(dict(self._ended.by_principal)),
        )

    def decide(self, command: object) -> tuple[list[Fact], AccountResult]:  # noqa: C901, PLR0911  one for each
        match command:
            case ChangeUser():
                return self._change_user(command)
            case DeleteUser(name):
                return ([UserForgotten(name)], AccountResult()) if name in self._users else ([], _none("user", name))
            case CreateKey():
                return self._create_key(command.key)
            case RotateKey():
                return self._rotate(command)
            case DeleteKey(key_id):
                return ([KeyForgotten(key_id)], AccountResult()) if key_id in self._keys else ([], _none("key", key_id))
            case Reseal(before, after):
                return self._reseal(before, after), AccountResult()
            case CreateRules():
                return self._create_rules(command)
            case DeleteRules(rule_ids):
                gone = [RuleForgotten(each) for each in dict.fromkeys(rule_ids) if each in self._rules]
                return list(gone), AccountResult() if gone else _none("rule", ", ".join(rule_ids))
            case SetQuota() if self.is_going(command.user or ""):
                return [], _going(tenant_said(command.user or ""))
            case _ if isinstance(command, QUOTA_COMMANDS):
                return self._quotas.decide(command)
            case _ if isinstance(command, TENANT_COMMANDS):
                return self._tenants.decide(command, self._users)
            case EndSession():
                return self._ended.decide(command)
        raise TypeError(f"no command about accounts: {command!r}")

    def is_going(self, name: str) -> bool:
        """It is of a tenant that is being deleted: nothing is made any more that would have to go with it."""
        found = self._tenants.by_id.get(tenant_said(name))
        return found is not None and found.status is TenantStatus.DELETING

    def closed(self, tenant_id: str) -> AccountResult | None:
        """Why nothing can be made for this tenant; None: it can."""
        return self._tenants.closed(tenant_id)

    def _full(self, what: str, tenants: Iterable[str], tenant_id: str) -> AccountResult | None:
        """Why there can be no more of these for a tenant. `tenants`: of each that there is."""
        counts = Counter(tenants)
        if counts.total() >= ACCOUNTS_MAX:
            return AccountResult(Code.POLICY_VIOLATION, f"there are {ACCOUNTS_MAX} {what}, and there can be no more")
        tenant = self._tenants.by_id.get(tenant_id)
        if tenant is None or counts[tenant_id] < tenant.most(TenantLimit.ACCOUNTS, ACCOUNTS_MAX):
            return None
        return AccountResult(Code.POLICY_VIOLATION, f"{tenant.full_words(TenantLimit.ACCOUNTS, ACCOUNTS_MAX)} {what}")

    def _change_user(self, command: ChangeUser) -> tuple[list[Fact], AccountResult]:
        before = self._users.get(command.name)
        if before is None and (closed := self.closed(tenant_said(command.name))):
            words = f"{closed.message}, and a user's name with a {MARK} begins with the id of one"
            return [], AccountResult(Code.UNACCEPTABLE_CREDENTIAL, words)
        if before is None and command.is_new is False:
            return [], _none("user", command.name)
        changed = {**({} if before is None else before.scram), **command.scram}
        scram = {mechanism: verifier for mechanism, verifier in changed.items() if verifier is not None}
        roles = (() if before is None else before.roles) if command.roles is None else command.roles
        after = User(command.name, scram, roles, command.created_ms if before is None else before.created_ms)
        if before is not None and command.is_new:
            # The very same was stored by this command, if its answer was lost: salts are random.
            is_ours = after == before
            return [], AccountResult() if is_ours else _taken("user", command.name)
        if not scram:
            return (
                ([], _none("user", command.name))
                if before is None
                else ([UserForgotten(command.name)], AccountResult())
            )
        if before is None and (full := self._full("users", map(tenant_said, self._users), tenant_said(command.name))):
            return [], full
        facts: list[Fact] = [] if after == before else [UserStored(after)]
        return [*facts, *self._ends(after.roles, tenant_said(after.name))], AccountResult()

    def _create_key(self, key: ApiKey) -> tuple[list[Fact], AccountResult]:
        before = self._keys.get(key.key_id)
        if before is not None:
            return [], AccountResult() if before == key else _taken("key", key.key_id)
        if closed := self.closed(key.tenant):
            return [], closed
        if full := self._full("keys", (each.tenant for each in self._keys.values()), key.tenant):
            return [], full
        lasts = () if key.is_bootstrap or key.expires_ms else key.roles
        return [KeyStored(key), *self._ends(lasts, key.tenant)], AccountResult()

    def _ends(self, roles: tuple[str, ...], tenant_id: str) -> list[Fact]:
        """Bootstrap keys end with the first lasting admin of the cluster: a tenant's could not take their place."""
        if ADMIN not in roles or tenant_id in self._tenants.by_id:
            return []
        return [KeyForgotten(each.key_id) for each in self._keys.values() if each.is_bootstrap]

    def _rotate(self, command: RotateKey) -> tuple[list[Fact], AccountResult]:
        key = self._keys.get(command.key_id)
        if key is None:
            return [], _none("key", command.key_id)
        newest = key.secrets[0]
        if compare_digest(newest.digest, command.digest):
            return [], AccountResult()
        ends_ms = command.now_ms + command.overlap_ms
        older = () if not command.overlap_ms else (KeySecret(newest.digest, ends_ms, newest.sealed),)
        secrets = (KeySecret(command.digest, sealed=command.sealed), *older)[:SECRETS_MAX]
        return [KeyStored(msgspec.structs.replace(key, secrets=secrets))], AccountResult()

    def _reseal(self, before: User | ApiKey, after: User | ApiKey) -> list[Fact]:
        if isinstance(after, User):
            return [UserStored(after)] if self._users.get(after.name) == before else []
        return [KeyStored(after)] if self._keys.get(after.key_id) == before else []

    def _create_rules(self, command: CreateRules) -> tuple[list[Fact], AccountResult]:
        known = {said(rule) for rule in self._rules.values()}
        new: dict[tuple[object, ...], Rule] = {}
        for rule in command.rules:
            if said(rule) not in known:
                new.setdefault(said(rule), rule)
        if closed := next(filter(None, (self.closed(rule.tenant) for rule in new.values())), None):
            return [], closed
        tenants = [each.tenant for each in self._rules.values()]
        for rule in new.values():
            if full := self._full("rules", tenants, rule.tenant):
                return [], full
            tenants.append(rule.tenant)
        return [RuleStored(rule) for rule in new.values()], AccountResult()

    def apply(self, fact: AccountFact) -> None:
        match fact:
            case UserStored(user):
                self._users[user.name] = user
            case UserForgotten(name):
                self._users.pop(name, None)
            case KeyStored(key):
                self._keys[key.key_id] = key
            case KeyForgotten(key_id):
                self._keys.pop(key_id, None)
            case RuleStored(rule):
                self._rules[rule.rule_id] = rule
            case RuleForgotten(rule_id):
                self._rules.pop(rule_id, None)
            case QuotaStored() | QuotaForgotten():
                self._quotas.apply(fact)
            case SessionsEnded() | EndedForgotten():
                self._ended.apply(fact)
            case _:
                self._tenants.apply(fact)

    def forget(self, key: bytes) -> bool:
        """Replay of a tombstone. False: it is none of these."""
        parts: tuple[tuple[bytes, dict[str, object]], ...] = (
            (USER_KEY, self._users),  # type: ignore[assignment]  # only taken from
            (API_KEY, self._keys),
            (RULE_KEY, self._rules),
        )
        for prefix, known in parts:
            if key.startswith(prefix):
                known.pop(key.removeprefix(prefix).decode(), None)
                return True
        return self._quotas.forget(key) or self._tenants.forget(key) or self._ended.forget(key)

    def facts(self) -> Iterator[Fact]:
        yield from (UserStored(each) for each in self._users.values())
        yield from (KeyStored(each) for each in self._keys.values())
        yield from (RuleStored(each) for each in self._rules.values())
        yield from self._quotas.facts()
        yield from self._tenants.facts()
        yield from self._ended.facts()


def said(rule: Rule) -> tuple[object, ...]:
    """All but its id."""
    return msgspec.structs.astuple(rule)[1:]


def _going(tenant_id: str) -> AccountResult:
    return AccountResult(Code.DUPLICATE_RESOURCE, f"tenant {tenant_id!r} is being deleted")


def _none(what: str, name: str) -> AccountResult:
    return AccountResult(Code.RESOURCE_NOT_FOUND, f"there is no {what} {name!r}")


def _taken(what: str, name: str) -> AccountResult:
    return AccountResult(Code.DUPLICATE_RESOURCE, f"{what} {name!r} already exists")

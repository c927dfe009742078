"""Users, keys, rules, quotas, tenants and ended sessions as they stand in etcd. Nothing in them is a secret: see
`goqueue.model.accounts`.
"""

from collections.abc import Callable, Mapping

import msgspec

from goqueue.cluster.accounts import AccountKey, AccountValue
from goqueue.model.access import Rule
from goqueue.model.accounts import ApiKey, User
from goqueue.model.metadata import ApiKeyKey, EndedKey, QuotaOf, RuleKey, TenantKey, UserKey
from goqueue.model.quotas import Quota
from goqueue.model.sessions import EndedSessions
from goqueue.model.tenancy import Tenant


class _User(msgspec.Struct):
    v: int
    user: User

    def value(self) -> AccountValue:
        return self.user


class _ApiKey(msgspec.Struct):
    v: int
    key: ApiKey

    def value(self) -> AccountValue:
        return self.key


class _Rule(msgspec.Struct):
    v: int
    rule: Rule

    def value(self) -> AccountValue:
        return self.rule


class _Quota(msgspec.Struct):
    v: int
    quota: Quota

    def value(self) -> AccountValue:
        return self.quota


class _Tenant(msgspec.Struct):
    v: int
    tenant: Tenant

    def value(self) -> AccountValue:
        return self.tenant


class _Ended(msgspec.Struct):
    v: int
    ended: EndedSessions

    def value(self) -> AccountValue:
        return self.ended


_Form = _User | _ApiKey | _Rule | _Quota | _Tenant | _Ended
ACCOUNT_FORMS: Mapping[type[AccountKey], type[_Form]] = {
    UserKey: _User,
    ApiKeyKey: _ApiKey,
    RuleKey: _Rule,
    QuotaOf: _Quota,
    TenantKey: _Tenant,
    EndedKey: _Ended,
}
ACCOUNT_KEYS: Mapping[str, Callable[[str], AccountKey]] = {
    "users": UserKey,
    "keys": ApiKeyKey,
    "rules": RuleKey,
    "quotas": QuotaOf,
    "tenants": TenantKey,
    "ended": EndedKey,
}


def account_path(key: AccountKey) -> str:
    match key:
        case UserKey():
            return f"users/{key.name}"
        case ApiKeyKey():
            return f"keys/{key.key_id}"
        case RuleKey():
            return f"rules/{key.rule_id}"
        case QuotaOf():
            return f"quotas/{key.quota_id}"
        case TenantKey():
            return f"tenants/{key.tenant_id}"
        case EndedKey():
            return f"ended/{key.principal}"


def account_in_json(version: int, value: AccountValue) -> _Form:
    match value:
        case User():
            return _User(version, value)
        case ApiKey():
            return _ApiKey(version, value)
        case Rule():
            return _Rule(version, value)
        case Quota():
            return _Quota(version, value)
        case Tenant():
            return _Tenant(version, value)
        case EndedSessions():
            return _Ended(version, value)

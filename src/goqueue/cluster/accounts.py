"""Users, keys, rules, quotas, tenants and ended sessions between the controller machine, which has facts, and a store
with keys and values.
"""

from goqueue.machines.accounts import (
    AccountFact,
    KeyForgotten,
    KeyStored,
    RuleForgotten,
    RuleStored,
    UserForgotten,
    UserStored,
)
from goqueue.machines.controller_facts import SchedulePlaced
from goqueue.machines.ended_sessions import EndedForgotten, SessionsEnded
from goqueue.machines.group_options import GroupOptionsStored
from goqueue.machines.machine import Fact
from goqueue.machines.quotas import QuotaForgotten, QuotaStored
from goqueue.machines.tenants import TenantForgotten, TenantStored
from goqueue.model.access import Rule
from goqueue.model.accounts import ApiKey, User
from goqueue.model.metadata import ApiKeyKey, EndedKey, QuotaOf, RuleKey, TenantKey, UserKey, Value
from goqueue.model.quotas import Quota
from goqueue.model.sessions import EndedSessions
from goqueue.model.tenancy import DEFAULT_TENANT, Tenant, tenant_said

AccountKey = UserKey | ApiKeyKey | RuleKey | QuotaOf | TenantKey | EndedKey
AccountValue = User | ApiKey | Rule | Quota | Tenant | EndedSessions


def account_change(fact: AccountFact) -> tuple[AccountKey, AccountValue | None]:  # noqa: C901, PLR0911  one for each
    match fact:
        case UserStored():
            return UserKey(fact.user.name), fact.user
        case UserForgotten():
            return UserKey(fact.name), None
        case KeyStored():
            return ApiKeyKey(fact.api_key.key_id), fact.api_key
        case KeyForgotten():
            return ApiKeyKey(fact.key_id), None
        case RuleStored():
            return RuleKey(fact.rule.rule_id), fact.rule
        case RuleForgotten():
            return RuleKey(fact.rule_id), None
        case QuotaStored():
            return QuotaOf(fact.quota.quota_id), fact.quota
        case QuotaForgotten():
            return QuotaOf(fact.quota_id), None
        case TenantStored():
            return TenantKey(fact.tenant.tenant_id), fact.tenant
        case TenantForgotten():
            return TenantKey(fact.tenant_id), None
        case SessionsEnded():
            return EndedKey(fact.ended.principal), fact.ended
        case EndedForgotten():
            return EndedKey(fact.principal), None


def tenant_of_fact(fact: Fact) -> str:  # noqa: PLR0911  one for each
    """Whose something is that is made or changed and goes with its tenant. That of all else is the default one; a
    topic's is looked at where it is made."""
    match fact:
        case GroupOptionsStored():
            return tenant_said(fact.group_id)
        case SchedulePlaced():
            return tenant_said(fact.name)
        case QuotaStored():
            return tenant_said(fact.quota.user or "")
        case UserStored():
            return tenant_said(fact.user.name)
        case KeyStored():
            return fact.api_key.tenant
        case RuleStored():
            return fact.rule.tenant
        case _:
            return DEFAULT_TENANT


def account_fact(key: AccountKey, value: Value | None) -> AccountFact:
    match key:
        case UserKey(name):
            return UserStored(value) if isinstance(value, User) else UserForgotten(name)
        case ApiKeyKey(key_id):
            return KeyStored(value) if isinstance(value, ApiKey) else KeyForgotten(key_id)
        case RuleKey(rule_id):
            return RuleStored(value) if isinstance(value, Rule) else RuleForgotten(rule_id)
        case QuotaOf(quota_id):
            return QuotaStored(value) if isinstance(value, Quota) else QuotaForgotten(quota_id)
        case TenantKey(tenant_id):
            return TenantStored(value) if isinstance(value, Tenant) else TenantForgotten(tenant_id)
        case EndedKey(principal):
            return SessionsEnded(value) if isinstance(value, EndedSessions) else EndedForgotten(principal)

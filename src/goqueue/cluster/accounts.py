"""Users, keys, rules and quotas between the controller machine, which has facts, and a store with keys and values."""

from goqueue.machines.accounts import (
    AccountFact,
    KeyForgotten,
    KeyStored,
    RuleForgotten,
    RuleStored,
    UserForgotten,
    UserStored,
)
from goqueue.machines.quotas import QuotaForgotten, QuotaStored
from goqueue.model.access import Rule
from goqueue.model.accounts import ApiKey, User
from goqueue.model.metadata import ApiKeyKey, QuotaOf, RuleKey, UserKey, Value
from goqueue.model.quotas import Quota

AccountKey = UserKey | ApiKeyKey | RuleKey | QuotaOf
AccountValue = User | ApiKey | Rule | Quota


def account_change(fact: AccountFact) -> tuple[AccountKey, AccountValue | None]:  # noqa: PLR0911  one for each
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

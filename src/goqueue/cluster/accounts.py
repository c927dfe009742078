"""Users, keys and rules between the controller machine, which has facts, and a store, which has keys and values."""

from goqueue.machines.accounts import (
    AccountFact,
    KeyForgotten,
    KeyStored,
    RuleForgotten,
    RuleStored,
    UserForgotten,
    UserStored,
)
from goqueue.model.access import Rule
from goqueue.model.accounts import ApiKey, User
from goqueue.model.metadata import ApiKeyKey, RuleKey, UserKey, Value

AccountKey = UserKey | ApiKeyKey | RuleKey
AccountValue = User | ApiKey | Rule


def account_change(fact: AccountFact) -> tuple[AccountKey, AccountValue | None]:
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


def account_fact(key: AccountKey, value: Value | None) -> AccountFact:
    match key:
        case UserKey(name):
            return UserStored(value) if isinstance(value, User) else UserForgotten(name)
        case ApiKeyKey(key_id):
            return KeyStored(value) if isinstance(value, ApiKey) else KeyForgotten(key_id)
        case RuleKey(rule_id):
            return RuleStored(value) if isinstance(value, Rule) else RuleForgotten(rule_id)

"""Users, keys and rules of one tenant. A user's name is kept like any other; a key and a rule say whose they are."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import msgspec

from goqueue.broker.view.ports import Port, not_for_tenants
from goqueue.broker.view.shown import shown_error
from goqueue.model.access import THE_CLUSTER, Kind
from goqueue.model.accounts import AccessImage
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused

OF_USERS = frozenset({"alter_scram", "change_user", "create_user", "delete_user", "verifier"})
OF_KEYS = frozenset({"delete_key", "rotate_key"})
OF_ALL = frozenset({"delete_quota", "rekey", "set_quota"})
"""What the default tenant alone may use: it is about all of them."""


class AccountsPort(Port):
    def __getattr__(self, name: str) -> Any:
        tenancy = self._scope.tenancy
        if tenancy.is_all or (tenancy.is_default and name in OF_ALL):
            return super().__getattr__(name)
        if name not in self._rules.whole or name in OF_ALL:
            raise not_for_tenants(self._scope)
        self._scope.admit(Kind.CLUSTER, THE_CLUSTER)
        return self._image() if name == "image" else self._of_one(name, getattr(self._service, name))

    def _of_one(self, name: str, found: Any) -> Any:
        tenancy = self._scope.tenancy
        if name in OF_USERS:
            return self._of_user(found)
        if name in OF_KEYS:
            return lambda key_id, *args, **kwargs: found(self._own("keys", key_id), *args, **kwargs)
        if name == "create_key":
            return lambda *args, **kwargs: found(*args, **kwargs, tenant=tenancy.tenant)
        if name == "create_rules":
            return lambda rules, on_reply: found(
                [msgspec.structs.replace(each, tenant=tenancy.tenant) for each in rules], on_reply
            )
        if name == "delete_rules":
            return lambda rule_ids, on_reply: found([self._own("rules", each) for each in rule_ids], on_reply)
        return found

    def _of_user(self, found: Callable[..., Any]) -> Callable[..., Any]:
        """What is wrong is told of the name that was asked for."""
        tenancy = self._scope.tenancy

        def heard(on_reply: Any) -> Any:
            if not callable(on_reply) or tenancy.is_default:
                return on_reply
            return lambda reply: on_reply(shown_error(tenancy, reply) if isinstance(reply, GoQueueError) else reply)

        def call(user: str, *args: Any, **kwargs: Any) -> Any:
            try:
                return found(self._full(user), *map(heard, args), **kwargs)
            except GoQueueError as error:
                raise error if tenancy.is_default else shown_error(tenancy, error) from None

        return call

    def _full(self, user: str) -> str:
        if not self._scope.tenancy.may_be_called(user):
            raise Refused(Code.UNACCEPTABLE_CREDENTIAL, f"the name {user!r} is another tenant's")
        return self._scope.tenancy.full(user)

    def _own(self, what: str, name: str) -> str:
        if name not in getattr(self._image(), what):
            raise Refused(Code.RESOURCE_NOT_FOUND, f"there is no {what.removesuffix('s')} {name!r}")
        return name

    def _image(self) -> AccessImage:
        """Of one tenant, with the names that it knows."""
        tenancy, whole = self._scope.tenancy, self._service.image
        users = {
            tenancy.plain(name): msgspec.structs.replace(user, name=tenancy.plain(name))
            for name, user in whole.users.items()
            if tenancy.owns(name)
        }
        keys = {key_id: key for key_id, key in whole.keys.items() if key.tenant == tenancy.tenant}
        rules = {rule_id: rule for rule_id, rule in whole.rules.items() if rule.tenant == tenancy.tenant}
        quotas = whole.quotas if tenancy.is_default else {}
        return AccessImage(
            whole.revision,
            MappingProxyType(users),
            MappingProxyType(keys),
            MappingProxyType(rules),
            MappingProxyType(dict(quotas)),
        )

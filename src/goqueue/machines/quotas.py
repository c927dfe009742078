"""Quotas, as the controller keeps them: facts beside users and rules."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from goqueue.machines.account_result import AccountResult
from goqueue.machines.machine import Command, Fact
from goqueue.model.codes import Code
from goqueue.model.quotas import Quota, quota_id

QUOTA_KEY = b"\0quota/"  # no topic can be called that
QUOTAS_MAX = 10_000


class SetQuota(Command[AccountResult], frozen=True):
    """Without any limit left there is no quota."""

    user: str | None
    client_id: str | None
    changes: Mapping[str, float | None]
    """None: this is not limited any more."""
    ip: str | None = None


class DeleteQuota(Command[AccountResult], frozen=True):
    user: str | None
    client_id: str | None
    ip: str | None = None


QUOTA_COMMANDS = (SetQuota, DeleteQuota)


class QuotaStored(Fact, frozen=True, tag="QuotaStored"):
    quota: Quota

    def key(self) -> bytes:
        return QUOTA_KEY + self.quota.quota_id.encode()


class QuotaForgotten(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    quota_id: str

    def key(self) -> bytes:
        return QUOTA_KEY + self.quota_id.encode()


QuotaFact = QuotaStored | QuotaForgotten


class Quotas:
    def __init__(self) -> None:
        self.by_id: dict[str, Quota] = {}

    def decide(self, command: object) -> tuple[list[Fact], AccountResult]:
        match command:
            case SetQuota():
                return self._set(command)
            case DeleteQuota(user, client_id, ip):
                name = quota_id(user, client_id, ip)
                if name not in self.by_id:
                    return [], AccountResult(Code.RESOURCE_NOT_FOUND, "there is no such quota")
                return [QuotaForgotten(name)], AccountResult()
        raise TypeError(f"no command about quotas: {command!r}")

    def _set(self, command: SetQuota) -> tuple[list[Fact], AccountResult]:
        before = self.by_id.get(quota_id(command.user, command.client_id, command.ip))
        changed = {**({} if before is None else before.limits), **command.changes}
        limits = {key: rate for key, rate in changed.items() if rate is not None}
        if before is None and limits and len(self.by_id) >= QUOTAS_MAX:
            return [], AccountResult(Code.POLICY_VIOLATION, f"there are {QUOTAS_MAX} quotas, and there can be no more")
        after = Quota(command.user, command.client_id, limits, command.ip)
        if after == before or (before is None and not limits):
            return [], AccountResult()
        return [QuotaStored(after) if limits else QuotaForgotten(after.quota_id)], AccountResult()

    def apply(self, fact: QuotaFact) -> None:
        match fact:
            case QuotaStored(quota):
                self.by_id[quota.quota_id] = quota
            case QuotaForgotten(name):
                self.by_id.pop(name, None)

    def forget(self, key: bytes) -> bool:
        """Replay of a tombstone. False: it is none of these."""
        if not key.startswith(QUOTA_KEY):
            return False
        self.by_id.pop(key.removeprefix(QUOTA_KEY).decode(), None)
        return True

    def facts(self) -> Iterator[Fact]:
        yield from (QuotaStored(each) for each in self.by_id.values())

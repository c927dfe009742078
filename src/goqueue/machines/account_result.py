"""What comes of a command about accounts, rules or quotas."""

import msgspec

from goqueue.model.codes import Code


class AccountResult(msgspec.Struct, frozen=True):
    code: Code = Code.NONE
    message: str = ""

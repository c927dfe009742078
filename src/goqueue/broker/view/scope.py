"""What one operation of one client may touch: each name that it passes to the broker is mapped, checked and charged."""

from typing import Final

from goqueue.model.access import THE_CLUSTER, Kind, Operation, Permission, Rights, refusal


class Scope:
    """One tenant has all names as yet, so that a plain name is the full one; and nothing is charged."""

    __slots__ = ("permission", "rights")

    def __init__(self, permission: Permission, rights: Rights) -> None:
        self.permission: Final = permission
        self.rights = rights
        """As they are now: an operation that goes on while they change meets the new ones."""
        if next(iter(permission.needs), None) is Kind.CLUSTER:  # else whoever turns to the cluster asks for it
            self.admit(Kind.CLUSTER, THE_CLUSTER)

    def admit(self, kind: Kind, name: str, operation: Operation | None = None) -> str:
        """The full name. Raises if it may not be touched, or if its kind was not declared."""
        asked = self.permission.operation(kind, operation)
        if asked is None or not self.rights.allows(kind, asked, name):
            raise refusal(kind, operation or asked, name)
        return name

    def shows(self, kind: Kind, name: str) -> bool:
        """Whether a list has it. Raises if its kind was not declared: then there should be no list."""
        asked = self.permission.operation(kind)
        if asked is None:
            raise refusal(kind, None, name)
        return self.rights.allows(kind, asked, name)

    def is_open_to(self, kind: Kind, operation: Operation | None = None) -> bool:
        """Every name of this kind would be admitted as it is: whoever finds that out first need not ask again."""
        return self.rights.are_all and self.permission.operation(kind, operation) is not None

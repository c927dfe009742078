"""Who a certificate belongs to: the names in it, and the rules that make one principal of them.

Parts of a subject are compared one by one. The text of a whole subject is not: libraries write it in different orders.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import re2  # type: ignore[import-untyped]

URI, DNS = "uri", "dns"
ARROW = "->"


class CertificateNames(NamedTuple):
    uris: tuple[str, ...] = ()
    """Alternative names of the subject, as SPIFFE has them."""
    dns: tuple[str, ...] = ()
    subject: Mapping[str, tuple[str, ...]] = {}
    """Parts of the subject by their short names: CN, OU, O, ..."""

    def named(self, field: str) -> tuple[str, ...]:
        if field == URI:
            return self.uris
        return self.dns if field == DNS else self.subject.get(field, ())


class PrincipalRule(NamedTuple):
    """`uri=spiffe://example.org/(.+)->\\1`: where this part of a certificate matches as a whole, it gives this name."""

    field: str
    pattern: str
    name: str

    @classmethod
    def parse(cls, text: str) -> "PrincipalRule":
        """ValueError: this is none."""
        field, equals, rest = text.strip().partition("=")
        pattern, arrow, name = rest.rpartition(ARROW)
        field = field if field in (URI, DNS) else field.upper()
        if not (equals and arrow and pattern and name) or not (field in (URI, DNS) or field.isalpha()):
            raise ValueError(text)
        try:
            compiled = re2.compile(pattern)
            compiled.fullmatch("")
        except re2.error as error:
            raise ValueError(text) from error
        return cls(field, pattern, name)

    def __str__(self) -> str:
        return f"{self.field}={self.pattern}{ARROW}{self.name}"

    def name_of(self, names: CertificateNames) -> str | None:
        for value in names.named(self.field):
            found = re2.fullmatch(self.pattern, value)
            if found is not None:
                return str(found.expand(self.name))
        return None


DEFAULT_RULES = tuple(map(PrincipalRule.parse, (r"uri=(.+)->\1", r"dns=(.+)->\1", r"CN=(.+)->\1")))


def principal_of(names: CertificateNames, rules: Iterable[PrincipalRule], kind: str = "User") -> str | None:
    """The first rule that matches gives the name. None: no rule does, and the client is nobody."""
    for rule in rules:
        found = rule.name_of(names)
        if found:
            return f"{kind}:{found}"
    return None

"""Source text of a function, put together line by line: the part that both compilers share."""

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from struct import error as StructError
from typing import Any

from goqueue.wire.kafka.notation import Message

SMALL_ARRAY = 8
"""Arrays of numbers below this length, as most are, find their Struct ready."""


class Source:
    """Lines, and the names that they use. A run of fields of fixed size is collected and handled by one Struct."""

    def __init__(self, signature: str, title: str) -> None:
        self.title = title
        """What error messages call the message."""
        self.names: dict[str, Any] = {"Struct": Struct, "StructError": StructError}
        self.run: list[tuple[str, str]] = []
        """(struct code, variable or expression) of fields that no line has handled yet."""
        self._lines = [signature]
        self._depth = 1
        self._counts: dict[str, int] = {}

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        assert not self.run, "a run must not reach into a block"
        self.line(head)
        self._depth += 1
        yield
        assert not self.run, "a run must not reach out of a block"
        self._depth -= 1

    def fresh(self, hint: str) -> str:
        """A variable that no other line uses."""
        self._counts[hint] = self._counts.get(hint, 0) + 1
        return f"{hint}_{self._counts[hint]}"

    def class_name(self, message: type[Message]) -> str:
        self.names[message.__name__] = message
        return message.__name__

    def struct_method(self, codes: str, method: str) -> str:
        """The name of a bound method of the Struct for these codes."""
        name = f"{method}_{codes}".replace("?", "t")
        self.names[name] = getattr(Struct(f">{codes}"), method)
        return name

    def array_method(self, code: str, method: str, length: str) -> str:
        """An expression for a bound method of the Struct for so many of this code."""
        assert len(code) == 1, "a number in front of 16s would not count it"
        name = f"{method}_{code}_arrays"
        self.names[name] = [getattr(Struct(f">{count}{code}"), method) for count in range(SMALL_ARRAY)]
        return f'({name}[{length}] if {length} < {SMALL_ARRAY} else Struct(f">{{{length}}}{code}").{method})'

    def literal(self, default: Any) -> str:
        """An expression for the default of a field: never a shared list or message."""
        if default is list:
            return "[]"
        if isinstance(default, type):
            return f"{self.class_name(default)}()"
        return repr(default)

    def compile(self, function: str) -> Any:
        text = "\n".join(self._lines)
        exec(compile(text, f"<{function} {self.title}>", "exec"), self.names)  # noqa: S102  our own schema, no input
        return self.names[function]

"""One run of one command: what was said, whom to ask, and where to show the answer."""

import sys
from argparse import Namespace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from goqueue.cli.exits import EXIT_USAGE, CommandFailed
from goqueue.cli.table import Command

if TYPE_CHECKING:
    from goqueue.cli.contexts import Target
    from goqueue.cli.output import Output
    from goqueue.cli.progress import Progress
    from goqueue.client import Admin, Security


class Call:
    def __init__(self, given: Namespace, command: Command) -> None:
        self.given = given
        self.command = command
        self.form: str = getattr(given, "output", "") or (command.outputs or ("table",))[0]
        if command.outputs and self.form not in command.outputs:
            given.refuse(f"-o {self.form}: this command knows {', '.join(command.outputs)}")

    @property
    def is_watched(self) -> bool:
        return getattr(self.given, "watch", False)

    @cached_property
    def out(self) -> "Output":
        from goqueue.cli.output import Output

        return Output(self.form)

    @cached_property
    def progress(self) -> "Progress":
        from goqueue.cli.progress import Progress

        return Progress(sys.stderr)

    @cached_property
    def target(self) -> "Target":
        from goqueue.cli.contexts import resolve

        return resolve(self.given)

    @cached_property
    def admin(self) -> "Admin":
        from goqueue.client import Admin

        target = self.target
        how: dict[str, Any] = {}
        if not self.needs_loop:
            from goqueue.cli.without_loop import BlockingClock, BlockingStreams

            how = {"clock": BlockingClock(), "streams": BlockingStreams()}
        key = None if target.login.api_key is None else target.login.api_key.reveal()
        return Admin(target.server, api_key=key, timeout=target.timeout_ms, security=self.security, **how)

    @property
    def needs_loop(self) -> bool:
        """An event loop. TLS is spoken by a library that wants one."""
        return self.command.needs_loop or self.is_watched or "https:" in self.target.server.lower()

    @cached_property
    def security(self) -> "Security | None":
        """Beside the key, which is sent as it is: the user or the token, files, and whom to act for."""
        target = self.target
        login = target.login
        if login.kind == "api-key" and target.ca is None and target.cert is None and target.tenant is None:
            return None
        from goqueue.cli.logins import security_of

        return security_of(target, with_key=False)

    async def close(self) -> None:
        if "admin" in self.__dict__:
            await self.admin.close()

    def confirm(self, question: str, *, flag: str) -> None:
        """Ask a person; where there is none, nothing is destroyed without being told so."""
        if not sys.stdin.isatty():
            raise CommandFailed(f"{question} Say {flag} if so; there is nobody to ask.", EXIT_USAGE)
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise CommandFailed("nothing was done")

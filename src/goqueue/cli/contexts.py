"""Which server a command asks: flags go before the environment, that before the file, that before the defaults."""

import os
from argparse import Namespace
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from goqueue.cli.exits import EXIT_USAGE, CommandFailed, complain
from goqueue.cli.logins import NOBODY, OTHERS, SECRETS, Login, Source, by_flags, by_variables, login_of
from goqueue.cli.values import duration_ms
from goqueue.model.secret import hides
from goqueue.node.environment import client_environment

DEFAULT_NAME = "local"
DEFAULT_SERVER = "http://127.0.0.1:8080"
DEFAULT_TIMEOUT_MS = 30_000
HIDDEN = "(hidden)"
FILES = {"ca": "ca", "cert": "cert", "key": "cert_key", "key-password-file": "cert_key_password_file"}
"""In a context, and as a flag: `--key` is that of a message."""
FILE_MODE, DIRECTORY_MODE = 0o600, 0o700


class Target(NamedTuple):
    """Where to ask, and who told us each part."""

    server: str
    login: Login
    timeout_ms: int
    context: str | None
    sources: Mapping[str, str]
    ca: str | None = None
    """Files, for https: whom to believe, and what to show."""
    cert: str | None = None
    key: str | None = None
    key_password_file: str | None = None
    tenant: str | None = None
    """That an admin acts for."""
    kafka: str | None = None
    """Where Kafka clients connect, and whether with TLS: for the commands that are Kafka clients."""
    tls: bool = False


@hides("api_key", "password")
class _Context(msgspec.Struct, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    server: str | None = None
    api_key: str | None = None
    api_key_file: str | None = None
    timeout: str | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    key_password_file: str | None = None
    tenant: str | None = None
    user: str | None = None
    password: str | None = None
    password_file: str | None = None
    sasl: str | None = None
    token_file: str | None = None
    kafka: str | None = None
    tls: bool = False


class _File(msgspec.Struct, forbid_unknown_fields=True, rename="kebab"):
    current_context: str | None = None
    contexts: dict[str, _Context | None] | None = None


class Contexts:
    """The file `~/.goqueue/config.yaml`."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or Path.home() / ".goqueue" / "config.yaml"
        self.current: str | None = None
        self.contexts: dict[str, dict[str, Any]] = {}
        self._read()

    def _read(self) -> None:
        try:
            text = self.path.read_text("utf-8")
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            raise CommandFailed(f"cannot read {self.path}: {error}", EXIT_USAGE) from None
        import yaml  # not before there is a file: it takes its time

        try:
            found = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise CommandFailed(f"{self.path} is no YAML: {error}", EXIT_USAGE) from None
        self._take(found or {})
        has_secrets = any(secret in each for each in self.contexts.values() for secret in SECRETS)
        if has_secrets and self.path.stat().st_mode & OTHERS:
            complain(f"goqueue: others may read the secrets in {self.path}; mend it with: chmod 600 {self.path}", 0)

    def _take(self, found: Any) -> None:
        try:
            file = msgspec.convert(found, type=_File, strict=False)
        except msgspec.ValidationError as error:
            advice = "mend it, or delete it and use goqueue config set-context"
            raise CommandFailed(f"{self.path} cannot be used: {error}; {advice}", EXIT_USAGE) from None
        self.current = file.current_context
        for name, context in (file.contexts or {}).items():
            self.contexts[name] = {} if context is None else msgspec.to_builtins(context)

    def save(self) -> None:
        """All or nothing, and for nobody else's eyes."""
        import tempfile

        import yaml

        self.path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        text = yaml.safe_dump(self.as_dict(), sort_keys=False)
        number, name = tempfile.mkstemp(dir=self.path.parent, prefix=".config-")
        try:
            with os.fdopen(number, "w", encoding="utf-8") as file:
                file.write(text)
            Path(name).chmod(FILE_MODE)
            Path(name).replace(self.path)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(name).unlink()
            raise

    def as_dict(self, *, with_keys: bool = True) -> dict[str, Any]:
        shown = {
            name: {word: value if with_keys or word not in SECRETS else HIDDEN for word, value in context.items()}
            for name, context in self.contexts.items()
        }
        return {"current-context": self.current, "contexts": shown}

    def named(self, name: str) -> dict[str, Any]:
        if name not in self.contexts:
            known = ", ".join(sorted(self.contexts)) or "none yet"
            words = f"there is no context {name!r} in {self.path} (there: {known})"
            raise CommandFailed(f"{words}; make it with: goqueue config set-context {name} --server URL", EXIT_USAGE)
        return self.contexts[name]


def _path(name: str | None) -> str | None:
    return None if name is None else str(Path(name).expanduser())


def resolve(given: Namespace, contexts: Contexts | None = None) -> Target:
    told = client_environment()
    contexts = contexts or Contexts()
    is_chosen = bool(getattr(given, "context", None))
    name = getattr(given, "context", None) or told.get("GOQUEUE_CONTEXT") or None
    if name is None and contexts.current in contexts.contexts:
        name = contexts.current
    context = contexts.named(name) if name is not None else {}
    sources: dict[str, str] = {}

    def first(what: str, flag: object, variable: str, default: object) -> Any:
        choices = [(variable, told.get(variable) or None), (f"context {name}", context.get(what))]
        if is_chosen:  # a context named by a flag is a flag, too
            choices.reverse()
        for source, value in (("flag", flag), *choices, ("default", default)):
            if value is not None or source == "default":
                sources[what] = source
                return value
        raise AssertionError

    files = {
        what.replace("-", "_"): _path(first(what, getattr(given, flag, None), f"GOQUEUE_{flag.upper()}", None))
        for what, flag in FILES.items()
    }
    tenant = first("tenant", getattr(given, "acts_for", None), "GOQUEUE_TENANT", None)
    kafka = first("kafka", getattr(given, "kafka", None), "", None)
    optional = {**files, "tenant": tenant, "kafka": kafka}
    for what in [each for each in optional if optional[each] is None]:
        del sources[what.replace("_", "-")]
    choices = [by_variables(told), Source(f"context {name}", context)]
    login = login_of([by_flags(given), *(reversed(choices) if is_chosen else choices)]) or NOBODY
    sources[login.kind] = login.source
    timeout = first("timeout", getattr(given, "timeout", None), "", DEFAULT_TIMEOUT_MS)
    return Target(
        server=first("server", getattr(given, "server", None), "GOQUEUE_SERVER", DEFAULT_SERVER),
        login=login,
        timeout_ms=duration_ms(timeout) if isinstance(timeout, str) else timeout,
        context=name,
        sources=sources,
        tenant=tenant,
        kafka=kafka,
        tls=bool(context.get("tls")) or bool(getattr(given, "tls", False)),
        **files,
    )

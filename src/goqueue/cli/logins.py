"""Who a command says it is: a key, a user with a password, or a token. The first source that names one counts."""

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from goqueue.cli.exits import EXIT_USAGE, CommandFailed, complain
from goqueue.model.secret import Secret

if TYPE_CHECKING:
    from goqueue.cli.contexts import Target
    from goqueue.client import Security

OTHERS = 0o077
KINDS = {
    "api-key": ("api-key", "api-key-file"),
    "user": ("user", "password", "password-file", "sasl"),
    "token-file": ("token-file",),
}
"""A login is one of these, with the words that belong to it."""
NAMING = {"api-key": ("api-key", "api-key-file"), "user": ("user",), "token-file": ("token-file",)}
"""Words that say who it is: a password alone does not."""
SHOWN = {"api-key": "an API key", "user": "a user", "token-file": "a token"}
SECRETS = ("api-key", "password")
"""What is not shown."""
FILES_OF_SECRETS = {"api-key": "api-key-file", "password": "password-file"}
FILES_OF_LOGINS = (*FILES_OF_SECRETS.values(), "token-file")
FLAGS = {
    "api-key": "api_key",
    "api-key-file": "api_key_file",
    "user": "login_user",
    "password-file": "login_password_file",
    "sasl": "login_sasl",
    "token-file": "token_file",
}
"""As the parser calls them: `--user` of some commands is about another user."""
VARIABLES = {
    "api-key": "GOQUEUE_API_KEY",
    "api-key-file": "GOQUEUE_API_KEY_FILE",
    "user": "GOQUEUE_USER",
    "password": "GOQUEUE_PASSWORD",
    "password-file": "GOQUEUE_PASSWORD_FILE",
    "sasl": "GOQUEUE_SASL",
    "token-file": "GOQUEUE_TOKEN_FILE",
}


class Source(NamedTuple):
    name: str
    said: Mapping[str, str]


class Login(NamedTuple):
    """What is None was not said; a password that was not is asked for when it is needed."""

    api_key: Secret[str] | None = None
    user: str | None = None
    password: Secret[str] | None = None
    sasl: str | None = None
    token_file: str | None = None
    source: str = "default"

    @property
    def kind(self) -> str:
        return "user" if self.user is not None else "token-file" if self.token_file is not None else "api-key"


NOBODY = Login()


def by_flags(given: Namespace) -> Source:
    said = {what: getattr(given, flag, None) for what, flag in FLAGS.items()}
    return Source("flag", {what: value for what, value in said.items() if value})


def by_variables(told: Mapping[str, str]) -> Source:
    return Source("environment", {what: told[name] for what, name in VARIABLES.items() if told.get(name)})


def login_of(sources: Sequence[Source]) -> Login | None:
    """None: nobody says who asks. CommandFailed: it cannot be found out."""
    for source in sources:
        kind = only_kind(source.said, NAMING, source.name)
        if kind is not None:
            return _LOGINS[kind](source, sources)
    return None


def only_kind(said: Mapping[str, object], words: Mapping[str, Sequence[str]], where: str) -> str | None:
    kinds = [kind for kind in words if any(word in said for word in words[kind])]
    if len(kinds) > 1:
        raise CommandFailed(f"{where}: {' and '.join(SHOWN[each] for each in kinds)}; say one of them", EXIT_USAGE)
    return kinds[0] if kinds else None


def put_login(context: dict[str, Any], told: Mapping[str, Any], where: str) -> None:
    """Into what a context has: another login replaces the one before, and another user the password."""
    kind = only_kind(told, KINDS, where)
    gone = [word for each in KINDS if kind not in (None, each) for word in KINDS[each]]
    if "user" in told and told["user"] != context.get("user"):
        gone += KINDS["user"]
    if "password-file" in told:
        gone.append("password")
    for word in gone:
        context.pop(word, None)
    context.update(told)
    if kind == "user" and "user" not in context:
        raise CommandFailed(f"{where}: a password and a mechanism are those of a user; say --user", EXIT_USAGE)


def _key(source: Source, _sources: Sequence[Source]) -> Login:
    name = "GOQUEUE_API_KEY" if source.name == "environment" else source.name
    return Login(api_key=_secret(source, "api-key"), source=name)


def _user(source: Source, sources: Sequence[Source]) -> Login:
    """A password may come from elsewhere, but not from where it is another user's."""
    user = source.said["user"]
    found = [each for each in sources if each.said.get("user", user) == user]
    password = next((told for each in found if (told := _secret(each, "password")) is not None), None)
    sasl = next((each.said["sasl"] for each in found if "sasl" in each.said), None)
    name = "GOQUEUE_USER" if source.name == "environment" else source.name
    return Login(user=user, password=password, sasl=sasl, source=name)


def _token(source: Source, _sources: Sequence[Source]) -> Login:
    name = "GOQUEUE_TOKEN_FILE" if source.name == "environment" else source.name
    return Login(token_file=source.said["token-file"], source=name)


_LOGINS = {"api-key": _key, "user": _user, "token-file": _token}


def _secret(source: Source, what: str) -> Secret[str] | None:
    if what in source.said:
        return Secret(source.said[what])
    file = source.said.get(FILES_OF_SECRETS[what])
    return None if file is None else Secret(first_line(file, what))


def first_line(name: str, what: str) -> str:
    """CommandFailed: there is none. What else is in the file is not looked at."""
    path = Path(name).expanduser()
    shown = {"api-key": "API key"}.get(what, what)
    try:
        lines = path.read_text("utf-8").splitlines()
        is_open = path.stat().st_mode & OTHERS
    except (OSError, UnicodeDecodeError) as error:
        words = getattr(error, "strerror", None) or "it is no text"
        raise CommandFailed(f"the {shown} cannot be read: {path}: {words}", EXIT_USAGE) from None
    if not lines or not lines[0].strip():
        raise CommandFailed(f"{path} holds no {shown} in its first line", EXIT_USAGE)
    if is_open and what == "password":
        complain(f"goqueue: others may read the password in {path}; mend it with: chmod 600 {path}", 0)
    return lines[0].strip() if what != "password" else lines[0]


def ask_password(user: str) -> str:
    """Of a person, without showing it. CommandFailed: there is nobody."""
    if not sys.stdin.isatty():
        advice = "say --password-file FILE, GOQUEUE_PASSWORD_FILE, or password-file in the context"
        raise CommandFailed(f"there is nobody to ask for the password of {user}; {advice}", EXIT_USAGE)
    from getpass import getpass

    found = getpass(f"password of {user}: ")
    if not found:
        raise CommandFailed("the password is empty", EXIT_USAGE)
    return found


def security_of(target: "Target", *, with_key: bool = True) -> "Security":
    """As clients of Kafka, HTTP and gRPC take it. InvalidArgument: it does not go together."""
    from functools import partial

    from goqueue.client import Security

    login = target.login
    password = login.password
    if login.user is not None and password is None:
        password = Secret(ask_password(login.user))
    file = target.key_password_file
    return Security(
        api_key=login.api_key if with_key else None,
        user=login.user,
        password=password,
        token=None if login.token_file is None else partial(first_line, login.token_file, "token"),
        mechanism=login.sasl or "SCRAM-SHA-256",
        tls=target.tls or target.ca is not None or target.cert is not None,
        ca_file=target.ca,
        cert_file=target.cert,
        key_file=target.key,
        key_password=None if file is None else first_line(file, "password"),
        tenant=target.tenant,
    )

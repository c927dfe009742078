"""`goqueue user`, `key` and `acl`. No secret is taken from the command line, where every process sees it."""

import sys
from getpass import getpass
from pathlib import Path

from goqueue.cli.call import Call
from goqueue.cli.exits import EXIT_USAGE, CommandFailed
from goqueue.wire.rest.operations import accounts as operations


async def create_user(call: Call) -> None:
    given = call.given
    made = await call.admin.call(
        operations.CREATE_USER, name=given.name, password=_password(call), roles=given.roles or []
    )
    call.out.facts(made)


async def change_user(call: Call) -> None:
    given = call.given
    wants_password = given.password or given.password_file is not None
    if not wants_password and not given.roles:
        raise CommandFailed("say --password, --password-file or --role: what is to be changed", EXIT_USAGE)
    password = _password(call) if wants_password else None
    changed = await call.admin.call(
        operations.CHANGE_USER, user=given.user, password=password, roles=given.roles or None
    )
    call.out.facts(changed)


async def create_key(call: Call) -> None:
    given = call.given
    made = await call.admin.call(
        operations.CREATE_KEY,
        name=given.name,
        roles=given.roles or [],
        expires_in=given.expires_in,
        for_sqs=given.for_sqs,
    )
    call.out.facts(made)


async def rotate_key(call: Call) -> None:
    given = call.given
    call.out.facts(await call.admin.call(operations.ROTATE_KEY, key=given.key, overlap=given.overlap))


async def create_rule(call: Call) -> None:
    given = call.given
    made = await call.admin.call(
        operations.CREATE_ACL,
        principal=given.principal,
        operation=given.operation,
        resource_type=given.resource_type,
        resource_name=given.resource_name,
        effect="deny" if given.deny else "allow",
        host=given.host,
    )
    call.out.facts(made)


def _password(call: Call) -> str:
    path = call.given.password_file
    if path == "-":
        lines = sys.stdin.read().splitlines()
    elif path is not None:
        try:
            lines = Path(path).read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise CommandFailed(f"cannot read {path}: {error}", EXIT_USAGE) from None
    elif not sys.stdin.isatty():
        raise CommandFailed("there is nobody to ask for a password; say --password-file FILE", EXIT_USAGE)
    else:
        first, second = getpass("password: "), getpass("again: ")
        if first != second:
            raise CommandFailed("these are two passwords", EXIT_USAGE)
        lines = [first]
    if not lines or not lines[0]:
        raise CommandFailed("the password is empty", EXIT_USAGE)
    return lines[0]

"""`goqueue schema`."""

import sys
from pathlib import Path

from goqueue.cli.call import Call
from goqueue.cli.exits import EXIT_CONFLICT, EXIT_USAGE, CommandFailed
from goqueue.cli.output import column, number, plain


async def list_schemas(call: Call) -> None:
    subject = call.given.subject
    if subject is not None:
        await call.admin.schema_versions(subject)  # says so if there is none
    found = [each for each in await call.admin.schemas() if subject in (None, each.subject)]
    columns = (
        column("SUBJECT", "subject"),
        number("VERSION", "version"),
        number("ID", "id"),
        column("TYPE", "schema_type"),
        column("SCHEMA", "schema"),
    )
    call.out.rows(found, columns, nothing="no schemas yet")


def _text(call: Call) -> str:
    try:
        return sys.stdin.read() if call.given.file == "-" else Path(call.given.file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"cannot read {call.given.file}: {error}", EXIT_USAGE) from None


async def register(call: Call) -> None:
    subject = call.given.subject
    made = await call.admin.register_schema(subject, _text(call), call.given.type)
    call.out.done(f"{subject} has it as version {made.version}, id {made.id}", {"subject": subject, **plain(made)})


async def get(call: Call) -> None:
    given = call.given
    if (given.subject is None) == (given.id is None):
        given.refuse("say either a subject or --id")
    if given.id is not None:
        by_id = await call.admin.schema_by_id(given.id)
        call.out.facts(by_id, {"Id": by_id.id, "Type": by_id.schema_type})
        text = by_id.schema
    else:
        found = await call.admin.schema(given.subject, given.schema_version)
        shown = {"Subject": found.subject, "Version": found.version, "Id": found.id, "Type": found.schema_type}
        call.out.facts(found, shown)
        text = found.schema
    if call.out.is_for_a_person:
        call.out.line(f"\n{text}")


async def check(call: Call) -> int:
    given = call.given
    found = await call.admin.check_schema(given.subject, _text(call), given.type, version=given.schema_version)
    reasons = "".join(f"\n  {each}" for each in found.messages or ())
    verdict = "could be registered" if found.is_compatible else f"is not compatible{reasons}"
    call.out.done(f"it {verdict}", found)
    return 0 if found.is_compatible else EXIT_CONFLICT


async def delete(call: Call) -> None:
    given = call.given
    if not given.force:
        what = f"version {given.schema_version} of " if given.schema_version else "all versions of "
        call.confirm(f"Delete {what}{given.subject}?", flag="--force")
    gone = await call.admin.delete_schema(given.subject, given.schema_version, permanent=given.permanent)
    numbers = ", ".join(map(str, gone))
    call.out.done(f"deleted of {given.subject}: {numbers}", {"subject": given.subject, "versions": gone})


async def config(call: Call) -> None:
    given = call.given
    if given.level is None:
        level = await call.admin.compatibility(given.subject)
    else:
        level = await call.admin.set_compatibility(given.level, given.subject)
    subject = given.subject or "subjects that have no level of their own"
    call.out.done(f"{subject}: {level}", {"subject": given.subject, "compatibility": level})

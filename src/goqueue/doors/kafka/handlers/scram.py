"""Passwords of users, as kafka-configs shows and sets them. Nobody is told more than mechanism and iterations."""

from functools import partial

from goqueue.doors.kafka.request import Request
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.model.scram import Mechanism, Salted
from goqueue.wire.kafka.messages import quotas as wire

MECHANISMS = {1: Mechanism.SHA_256, 2: Mechanism.SHA_512}
NUMBERS = {mechanism: number for number, mechanism in MECHANISMS.items()}
Changes = dict[Mechanism, Salted | None]


def handle_describe_scram_credentials(request: Request) -> None:
    message: wire.DescribeUserScramCredentialsRequest = request.message
    accounts = request.broker.accounts
    known = accounts.image.users
    asked = sorted(known) if not message.users else [user.name for user in message.users]
    response = wire.DescribeUserScramCredentialsResponse(error_message=None)
    for name in dict.fromkeys(asked):
        if asked.count(name) > 1:
            words = "this user was named twice"
            response.results.append(wire.DescribedUserScramCredentials(name, Code.DUPLICATE_RESOURCE, words))
        elif name not in known:
            words = f"there is no user {name[:40]!r}"
            response.results.append(wire.DescribedUserScramCredentials(name, Code.RESOURCE_NOT_FOUND, words))
        else:
            infos = [
                wire.ScramCredentialInfo(NUMBERS[mechanism], verifier.iterations)
                for mechanism in Mechanism
                if (verifier := accounts.verifier(name, mechanism)) is not None
            ]
            response.results.append(wire.DescribedUserScramCredentials(name, Code.NONE, None, infos))
    request.answer(response)


def handle_alter_scram_credentials(request: Request) -> None:
    wanted = _wanted(request.message)
    results: dict[str, wire.AlteredUserScramCredentials] = {}

    def done(name: str, reply: object) -> None:
        code, words = (code_of(reply), str(reply)) if isinstance(reply, GoQueueError) else (Code.NONE, None)
        results[name] = wire.AlteredUserScramCredentials(name, code, words)
        if len(results) == len(wanted):
            request.answer(wire.AlterUserScramCredentialsResponse(0, [results[each] for each in wanted]))

    if not wanted:
        request.answer(wire.AlterUserScramCredentialsResponse())
    for name, changes in wanted.items():
        if isinstance(changes, Refused):
            done(name, changes)
            continue
        try:
            request.broker.accounts.alter_scram(name, changes, partial(done, name))
        except GoQueueError as error:
            done(name, error)


def _wanted(message: wire.AlterUserScramCredentialsRequest) -> dict[str, Changes | Refused]:
    """By user."""
    wanted: dict[str, Changes | Refused] = {}
    named: list[wire.ScramCredentialDeletion | wire.ScramCredentialUpsertion] = [*message.deletions]
    for each in (*named, *message.upsertions):
        changes, mechanism = wanted.setdefault(each.name, {}), MECHANISMS.get(each.mechanism)
        if isinstance(changes, Refused):
            continue
        if mechanism is None:
            words = "mechanisms are SCRAM-SHA-256 and SCRAM-SHA-512"
            wanted[each.name] = Refused(Code.UNSUPPORTED_SASL_MECHANISM, words)
        elif mechanism in changes:
            wanted[each.name] = Refused(Code.DUPLICATE_RESOURCE, f"{mechanism} of this user was named twice")
        elif isinstance(each, wire.ScramCredentialUpsertion):
            changes[mechanism] = Salted(bytes(each.salt), each.iterations, bytes(each.salted_password))
        else:
            changes[mechanism] = None
    return wanted

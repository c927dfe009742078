"""From an error to words for a person, with what to do next, and a code for a script."""

from goqueue.cli.call import Call
from goqueue.cli.exits import (
    EXIT_CONFLICT,
    EXIT_DENIED,
    EXIT_FAILED,
    EXIT_NOT_FOUND,
    EXIT_UNREACHABLE,
    EXIT_USAGE,
    complain,
)
from goqueue.client import ConnectionLost, HttpRefused, InvalidArgument, TimedOut
from goqueue.model.access import FORBIDDEN
from goqueue.model.errors import GoQueueError, InvalidMoment

CODES = {
    400: EXIT_USAGE,
    401: EXIT_DENIED,
    403: EXIT_DENIED,
    404: EXIT_NOT_FOUND,
    409: EXIT_CONFLICT,
    422: EXIT_USAGE,
    429: EXIT_UNREACHABLE,
    503: EXIT_UNREACHABLE,
}
NO_OFFSET = "OFFSET_OUT_OF_RANGE"
ADVICE = {
    "UNKNOWN_TOPIC_OR_PARTITION": "goqueue topic list shows topics, goqueue topic describe NAME their partitions;"
    " goqueue topic create NAME makes a topic",
    NO_OFFSET: "goqueue topic describe NAME shows where its partitions begin and end",
    "TOPIC_ALREADY_EXISTS": "goqueue topic describe NAME shows it, goqueue topic alter NAME changes it",
    "GROUP_ID_NOT_FOUND": "goqueue group list shows what is there",
    "NON_EMPTY_GROUP": "stop its members first; or turn them out with --force (delete) or --live (reset-offsets)",
    "NO_DEAD_LETTER": "goqueue dlq list TOPIC shows what is there",
    "NOT_PENDING": "it may have been published meanwhile; goqueue delay list TOPIC shows what still waits",
    "UNKNOWN_TRACE": "goqueue trace list shows the latest; what is older is forgotten",
    "REDRIVE_UNDER_WAY": "wait for its end",
    "TENANT_SUSPENDED": "an admin of default can end that: goqueue tenant activate TENANT",
    "POLICY_VIOLATION": "goqueue tenant quotas TENANT shows the limits; an admin of default can change them",
}


MISSING_RIGHT = {code.name for code in FORBIDDEN} | {"FORBIDDEN"}


def explain(error: GoQueueError, call: Call) -> int:
    advice = ""
    code = EXIT_FAILED
    if isinstance(error, HttpRefused):
        code = EXIT_NOT_FOUND if error.code == NO_OFFSET else CODES.get(error.status, EXIT_FAILED)
        advice = ADVICE.get(error.code, "")
        if error.code in MISSING_RIGHT:
            advice = "an admin can allow it: goqueue acl create PRINCIPAL OPERATION --on KIND --name NAME"
        elif code == EXIT_DENIED and not advice:
            advice = (
                "say a key with GOQUEUE_API_KEY, or: goqueue config set-context NAME --api-key-file FILE (or --user)"
            )
    elif isinstance(error, ConnectionLost):
        code = EXIT_UNREACHABLE
        advice = (
            "is a node running there? Start one with goqueue serve; or say where it is with --server, GOQUEUE_SERVER"
            " or goqueue config set-context NAME --server URL"
        )
    elif isinstance(error, TimedOut):
        code = EXIT_UNREACHABLE
        advice = f"wait longer with --timeout (now {call.target.timeout_ms / 1000:g}s)"
    elif isinstance(error, InvalidArgument | InvalidMoment):
        code = EXIT_USAGE
    words = f"goqueue: {error}"
    return complain(f"{words}\n  {advice}" if advice else words, code)

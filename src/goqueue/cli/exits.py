"""How a command ends: its exit codes, and a last word on stderr."""

import sys

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NOT_FOUND = 3
EXIT_CONFLICT = 4
EXIT_UNREACHABLE = 5
EXIT_DENIED = 6
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141
EXIT_TERMINATED = 143

EXIT_CODES = {
    0: "done",
    EXIT_FAILED: "failed: the message on stderr says why",
    EXIT_USAGE: "the command line, a value or a settings file cannot be used; nothing was done",
    EXIT_NOT_FOUND: "there is no such topic, group, message, schedule, schema or trace",
    EXIT_CONFLICT: "conflict: the topic exists already, or the group still has members",
    EXIT_UNREACHABLE: "no answer from the server, or it cannot serve now",
    EXIT_DENIED: "the server wants another API key",
    EXIT_INTERRUPTED: "Ctrl-C",
    EXIT_PIPE_CLOSED: "whoever read the output has gone",
    EXIT_TERMINATED: "SIGTERM",
}


class CommandFailed(Exception):
    """Ends a command with words for a person and a code for a script."""

    def __init__(self, message: str, code: int = EXIT_FAILED) -> None:
        super().__init__(message)
        self.code = code


def complain(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code

"""`goqueue admin reset`: the way back in for those who have lost every admin's credentials."""

from pathlib import Path

from goqueue.cli.call import Call
from goqueue.cli.exits import EXIT_FAILED, CommandFailed
from goqueue.node.offline import ask_for_first_key


def reset(call: Call) -> int:
    directory = Path(call.given.data_dir)
    try:
        ask_for_first_key(directory)
    except OSError as error:
        raise CommandFailed(f"{error.filename or directory}: {error.strerror}", EXIT_FAILED) from error
    words = "at its next start the node makes a new first key, and shows it on the terminal or writes bootstrap.key"
    call.out.done(words, {"data_dir": str(directory), "reset": True})
    return 0

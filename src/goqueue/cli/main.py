"""Entry point of the `goqueue` command. What a command needs is imported when it runs, so that help is instant."""

import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Coroutine, Sequence
from contextlib import closing
from typing import Any

from goqueue.cli.call import Call
from goqueue.cli.commands import commands_beginning
from goqueue.cli.exits import EXIT_INTERRUPTED, EXIT_PIPE_CLOSED, EXIT_USAGE, CommandFailed, complain
from goqueue.cli.parser import parse, show_help
from goqueue.cli.run.runners import runner
from goqueue.model.errors import GoQueueError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code of the process."""
    try:
        try:
            code = _run(sys.argv[1:] if arguments is None else arguments)
        finally:
            sys.stdout.flush()  # help, too, which ends in SystemExit
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whatever is still in the buffer has no reader: it must not fail once more when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE_CLOSED
    return code


def _run(arguments: Sequence[str]) -> int:
    given = parse(arguments)
    if given.command is None and given.is_version:
        (given.command,), given.remote = commands_beginning("version"), False
    return show_help(given) if given.command is None else _run_command(Call(given, given.command))


def _run_command(call: Call) -> int:
    try:
        result = _watched(call) if call.is_watched else runner(call.command.run)(call)
        if isinstance(result, Coroutine):
            with closing(result):
                result = _finished(call, result)
    except CommandFailed as error:
        return complain(f"goqueue: {error}", error.code)
    except ArgumentTypeError as error:
        return complain(f"goqueue: {error}", EXIT_USAGE)
    except GoQueueError as error:
        from goqueue.cli.failures import explain

        return explain(error, call)
    except ModuleNotFoundError as error:
        from goqueue.cli.extras import complain_of_extra, extra_of

        extra = extra_of(error.name or "")
        if extra is None:
            raise
        return complain_of_extra(call.command.words, extra)
    finally:
        if "progress" in call.__dict__:
            call.progress.clear()
    return result or 0


def _finished(call: Call, work: Coroutine[Any, Any, int | None]) -> int | None:
    if call.needs_loop:
        import asyncio

        return asyncio.run(_ended(call, work))
    from goqueue.cli import without_loop

    return without_loop.run(_ended(call, work))


def _watched(call: Call) -> Coroutine[Any, Any, int]:
    from goqueue.cli.watch import watch

    run: Any = runner(call.command.run)
    return watch(lambda: run(call), call.given.every, call.command.words)


async def _ended(call: Call, work: Coroutine[Any, Any, int | None]) -> int | None:
    try:
        return await work
    finally:
        await call.close()

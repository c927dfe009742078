"""Entry point of the `goqueue` command. What a command needs is imported when it runs, so that help is instant."""

from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Sequence

from goqueue.cli.bench.arguments import add_bench
from goqueue.cli.exits import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, complain
from goqueue.model.errors import InvalidSettings
from goqueue.node.settings import CONFIG_VARIABLE, SPECS, read_settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code of the process."""
    given = _make_parser().parse_args(arguments)
    try:
        code: int = given.run(given)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return code


def _make_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="goqueue", description="One durable log, read as a stream and as a queue.", allow_abbrev=False
    )
    parser.add_argument("--version", dest="run", action="store_const", const=_version, help="show the version")
    parser.set_defaults(run=lambda _: complain(parser.format_help().rstrip(), EXIT_USAGE))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    commands.add_parser("version", help="show the version").set_defaults(run=_version)

    serve = commands.add_parser(
        "serve", help="start a node", description="Start a node and run it until SIGTERM.", allow_abbrev=False
    )
    serve.set_defaults(run=_serve)
    serve.add_argument(
        "--config", metavar="FILE", help=f"TOML file with settings; flags and environment win ({CONFIG_VARIABLE})"
    )
    for spec in SPECS:
        default = f"default {spec.default}; " if spec.default else ""
        text = f"{spec.help} ({default}{spec.variable})".replace("%", "%%")
        serve.add_argument(spec.flag, dest=spec.name, metavar=spec.kind.metavar, default=SUPPRESS, help=text)
    add_bench(commands)
    return parser


def _version(_given: Namespace) -> int:
    from importlib.metadata import version

    print(f"goqueue {version('goqueue')}")
    return 0


def _serve(given: Namespace) -> int:
    flags = {spec.name: getattr(given, spec.name) for spec in SPECS if hasattr(given, spec.name)}
    try:
        settings = read_settings(flags, config=given.config)
    except InvalidSettings as error:
        problems = "\n".join(f"  {problem}" for problem in str(error).splitlines())
        return complain(f"goqueue: these settings cannot be used:\n{problems}", EXIT_USAGE)

    from goqueue.node.process import StartFailed, serve

    try:
        serve(settings)
    except StartFailed as error:
        return complain(f"goqueue: {error}", EXIT_FAILED)
    return 0

"""`goqueue serve`: the node itself."""

from goqueue.cli.call import Call
from goqueue.cli.exits import EXIT_FAILED, EXIT_USAGE, complain
from goqueue.model.errors import InvalidSettings
from goqueue.node.settings import SPECS, read_settings
from goqueue.node.values import Switch


def serve(call: Call) -> int:
    given = call.given
    said = {spec.name: getattr(given, spec.name) for spec in SPECS if hasattr(given, spec.name)}
    flags = {name: Switch.ON if value is True else value for name, value in said.items() if value is not False}
    try:
        settings = read_settings(flags, config=given.config)
    except InvalidSettings as error:
        problems = "\n".join(f"  {problem}" for problem in str(error).splitlines())
        return complain(f"goqueue: these settings cannot be used:\n{problems}", EXIT_USAGE)

    from goqueue.node.process import StartFailed
    from goqueue.node.process import serve as serve_node

    try:
        if settings.processes == 1:
            serve_node(settings)
        else:
            from goqueue.node.processes.supervisor import serve_many

            serve_many(settings)
    except StartFailed as error:
        return complain(f"goqueue: {error}", EXIT_FAILED)
    return 0

"""Commands about the schema registry."""

from goqueue.cli.table import Command, flag, place
from goqueue.cli.values import number

_SUBJECT = place("subject", "name of the subject, such as orders-value")
_TYPE = flag(
    "--type",
    metavar="AVRO|JSON|PROTOBUF",
    choices=("AVRO", "JSON", "PROTOBUF"),
    default="AVRO",
    help="what the schema is written in (default AVRO)",
)
_FILE = flag("-f", "--file", metavar="FILE", is_required=True, help="the schema; -: from stdin")
_LEVELS = (
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
)

SCHEMAS = (
    Command(
        "schema list",
        "list the subjects, or the versions of one",
        "schemas.list_schemas",
        (place("subject", "name of a subject", is_optional=True),),
        examples=("goqueue schema list", "goqueue schema list orders-value"),
    ),
    Command(
        "schema register",
        "register a schema as the next version of a subject",
        "schemas.register",
        (_SUBJECT, _FILE, _TYPE),
        examples=("goqueue schema register orders-value -f order.avsc",),
    ),
    Command(
        "schema get",
        "show a schema",
        "schemas.get",
        (
            place("subject", "name of the subject; with --id none", is_optional=True),
            flag("--version", metavar="N", default="latest", help="a version (default latest)", dest="schema_version"),
            flag("--id", metavar="ID", kind=number(), help="a schema by its id"),
        ),
        examples=("goqueue schema get orders-value --version 2", "goqueue schema get --id 7"),
    ),
    Command(
        "schema check",
        "say whether a schema could be registered",
        "schemas.check",
        (
            _SUBJECT,
            _FILE,
            _TYPE,
            flag("--version", metavar="N", help="only against this one, or latest", dest="schema_version"),
        ),
        about="Ends with 4 if it is not compatible.",
        examples=("goqueue schema check orders-value -f order.avsc",),
    ),
    Command(
        "schema delete",
        "delete a subject, or one version of it",
        "schemas.delete",
        (
            _SUBJECT,
            flag("--version", metavar="N", help="only this one (default: all)", dest="schema_version"),
            flag("--permanent", help="for good; it must have been deleted before"),
            flag("-f", "--force", help="do not ask first"),
        ),
        examples=("goqueue schema delete orders-value --force",),
    ),
    Command(
        "schema config",
        "show or set how new versions must fit to old ones",
        "schemas.config",
        (
            place("subject", "name of a subject (default: all)", is_optional=True),
            flag("--set", metavar="LEVEL", choices=_LEVELS, help=f"one of {', '.join(_LEVELS)}", dest="level"),
        ),
        examples=("goqueue schema config", "goqueue schema config orders-value --set FULL"),
    ),
)

"""A request that its client may not make, answered as a whole: the answer has the shape of the request, and wherever it
has room for an error it says what is not allowed.
"""

from typing import Any

from goqueue.model.refusal import Refused
from goqueue.wire.kafka.apis import Api
from goqueue.wire.kafka.notation import Message
from goqueue.wire.kafka.schema import Field, fields_of

CODE, WORDS = "error_code", "error_message"
"""How names of fields end."""


def forbidden(api: Api, version: int, message: Message, error: Refused) -> Message | None:
    """None: this API has no room for an error, and its client can only be sent away."""
    response = _filled(api.response, version, message, error)
    return response if _tells(response, version) else None


def _filled(kind: type[Message], version: int, asked: Any, error: Refused) -> Message:
    """`asked`: the part of the request that this part of the answer is for; a message, a name or a number."""
    made = kind()
    given = _fields(type(asked), version) if isinstance(asked, Message) else {}
    lists = [field for field in given.values() if field.is_array]
    is_named = bool(given)
    for name, field in _fields(kind, version).items():
        if name.endswith(CODE):
            value: Any = error.code
        elif name.endswith(WORDS):
            value = str(error)
        elif field.is_array and field.message is not None:
            source = given.get(name) or (lists[0] if lists else None)
            parts = (getattr(asked, source.name) if source is not None else None) or ()
            value = [_filled(field.message, version, each, error) for each in parts]
        elif name in given and field[:4] == given[name][:4]:
            value = getattr(asked, name)
        elif not is_named and not field.is_array and isinstance(field.default, type(asked)):
            value, is_named = asked, True
        else:
            continue
        setattr(made, name, value)
    return made


def _tells(response: Message, version: int) -> bool:
    fields = _fields(type(response), version)
    parts = (getattr(response, name) for name, field in fields.items() if field.is_array and field.message is not None)
    return any(name.endswith(CODE) for name in fields) or any(_tells(each, version) for part in parts for each in part)


def _fields(kind: type[Message], version: int) -> dict[str, Field]:
    return {field.name: field for field in fields_of(kind) if version in field.versions}

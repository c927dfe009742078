"""`goqueue completion` and `goqueue reference`: what is made from the table of commands for shells and for docs/."""

from goqueue.cli.call import Call
from goqueue.cli.completion import script
from goqueue.cli.reference import reference_page


def completion(call: Call) -> None:
    print(script(call.given.shell), end="")


def reference(_call: Call) -> None:
    print(reference_page(), end="")

"""The Python client does what the list of behaviours says, as those of other languages do."""

import sys

from tests.integration.process import Node
from tests.ops.behaviours import LIST, expected, run


def test_it_behaves_as_the_list_says(own_node: Node) -> None:
    command = [sys.executable, "-m", "tests.ops.python_behaviours", str(LIST), own_node.address, own_node.url]
    assert run(command, own_node) == expected()

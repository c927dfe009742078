"""From a path to what answers it, word by word: trying one pattern after the other costs more than the answer."""

from collections.abc import Mapping

from goqueue.wire.asgi import App


class Node:
    """`slot` is for any word."""

    __slots__ = ("app", "literal", "names", "slot")

    def __init__(self) -> None:
        self.literal: dict[str, Node] = {}
        self.slot: Node | None = None
        self.app: App | None = None
        self.names: list[str] = []
        """Of the slots on the way here, in their order."""


class Paths:
    """Where a word and a slot both fit, the word goes first."""

    def __init__(self, apps: Mapping[str, App]) -> None:
        self._root = Node()
        for path, app in apps.items():
            node, names = self._root, []
            for word in path[1:].split("/"):
                if word.startswith("{"):
                    names.append(word[1:-1])
                    node.slot = node.slot or Node()
                    node = node.slot
                else:
                    node = node.literal.setdefault(word, Node())
            assert node.app is None, f"{path} leads to two places"
            node.app, node.names = app, names
        self.first_words = frozenset(self._root.literal)

    def find(self, path: str) -> tuple[App, dict[str, str]] | None:
        given: list[str] = []
        node = _find(self._root, path[1:].split("/"), 0, given)
        if node is None or node.app is None:
            return None
        return node.app, dict(zip(node.names, reversed(given)))


def _find(node: Node, words: list[str], at: int, given: list[str]) -> Node | None:
    """What slots take is added to `given`, the last one first."""
    if at == len(words):
        return None if node.app is None else node
    word = words[at]
    following = node.literal.get(word)
    if following is not None:
        found = _find(following, words, at + 1, given)
        if found is not None:
            return found
    if node.slot is None or not word:
        return None
    found = _find(node.slot, words, at + 1, given)
    if found is not None:
        given.append(word)
    return found

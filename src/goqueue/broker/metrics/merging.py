"""Metrics of several processes on one page: whoever scrapes the port that they share shall not get those of one of
them, and of another one the next time.
"""

from collections.abc import Mapping

NODE_LABEL = 'node_id="'
"""In a value its quote would be escaped."""
END = "# EOF"


def merged(pages: Mapping[str, str]) -> str:
    """Pages of one format, by node. Each family comes once, with the series of all; every series says of which node it
    is, also those that the process itself tells."""
    families: dict[str, tuple[list[str], list[str]]] = {}
    """Of each its head and its series."""
    for node, page in pages.items():
        head, series = list[str](), list[str]()
        for line in page.splitlines():
            if line == END:
                continue
            if not line.startswith("#"):
                series.append(_labelled(line, node))
                continue
            name = line.split(" ", 3)[2]
            if name not in families:
                families[name] = [], []
            head, series = families[name]
            if line not in head:
                head.append(line)
    lines = [line for head, series in families.values() for line in (*head, *series)]
    if any(page.rstrip().endswith(END) for page in pages.values()):
        lines.append(END)
    return "\n".join(lines) + "\n"


def _labelled(line: str, node: str) -> str:
    if NODE_LABEL in line:
        return line
    name, brace, rest = line.partition("{")
    if brace and " " not in name:
        return f'{name}{{{NODE_LABEL}{node}",{rest}'
    name, _, rest = line.partition(" ")
    return f'{name}{{{NODE_LABEL}{node}"}} {rest}'

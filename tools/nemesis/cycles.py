"""Circles in a graph of dependencies: strongly connected parts by Tarjan, without recursion, and of each one a shortest
circle to show.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple


class Edge(NamedTuple):
    end: int
    kind: str


Graph = Mapping[int, Sequence[Edge]]
Cycle = list[tuple[int, Edge]]


def find_cycles(graph: Graph) -> list[Cycle]:
    """One for each part in which everything depends on everything."""
    return [_shortest(graph, part) for part in _parts(graph) if len(part) > 1]


def _parts(graph: Graph) -> Iterator[set[int]]:
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in sorted(graph):
        if root in index:
            continue
        work = [(root, iter(graph.get(root, ())))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, edges = work[-1]
            for edge in edges:
                if edge.end not in index:
                    index[edge.end] = low[edge.end] = len(index)
                    stack.append(edge.end)
                    on_stack.add(edge.end)
                    work.append((edge.end, iter(graph.get(edge.end, ()))))
                    break
                if edge.end in on_stack:
                    low[node] = min(low[node], index[edge.end])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    yield _pop_part(node, stack, on_stack)


def _pop_part(root: int, stack: list[int], on_stack: set[int]) -> set[int]:
    part = set()
    while True:
        node = stack.pop()
        on_stack.discard(node)
        part.add(node)
        if node == root:
            return part


def _shortest(graph: Graph, part: set[int]) -> Cycle:
    start = min(part)
    came: dict[int, tuple[int, Edge]] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for edge in graph.get(node, ()):
            if edge.end == start:
                cycle = [(node, edge)]
                while node != start:
                    cycle.append(came[node])
                    node = came[node][0]
                return cycle[::-1]
            if edge.end in part and edge.end not in came:
                came[edge.end] = node, edge
                queue.append(edge.end)
    raise AssertionError("a strongly connected part has a circle")

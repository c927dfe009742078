"""What all tests share: random examples that can be had again, and who runs which of them."""

import gc
import secrets
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from goqueue.telemetry.logs import write_in_our_shape

JOBS_AND_SINK = ("test_jobs_", "test_sink")

write_in_our_shape()  # so that structlog's own testing tools see our events
settings.register_profile("goqueue", deadline=None, print_blob=True)
settings.load_profile("goqueue")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of whole nodes belong to the second layer (`make test-rest`), but for one of each kind. What needs Go or
    Node is a layer of its own (`make test-ops`)."""
    for item in items:
        if "ops" in item.path.parts:
            item.add_marker(pytest.mark.ops)
        if {"integration", "acceptance", "upgrade"} & set(item.path.parts) and not item.get_closest_marker("smoke"):
            item.add_marker(pytest.mark.second_layer)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed here, before the workers start, so that one number repeats the whole run."""
    if config.getoption("hypothesis_seed") is None:
        config.option.hypothesis_seed = str(secrets.randbelow(2**32))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As in the background jobs of a shell. What the tests start would inherit it, and could not be interrupted.
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Many tests end with `gc.collect()`. It need not look at all that was imported and collected before, which is half
    a million objects and takes a third of a second.
    """
    gc.disable()
    collected = yield
    gc.collect()
    gc.freeze()
    gc.enable()
    return collected


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if terminalreporter.stats.get("failed"):
        seed = config.getoption("hypothesis_seed")
        terminalreporter.write_line(f"repeat the random examples with: make test ARGS=--hypothesis-seed={seed}")


class OneAtATime(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Each worker takes the next test when it is done with one. Those on Spark are taken as two wholes, and first: the
    tests of a worker share a session, and take longest. Each of the two leaves half a core idle."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._places: dict[Any, dict[str, int]] = {}
        """Of each worker where its tests stand in its collection."""

    def _split_scope(self, nodeid: str) -> str:
        name = nodeid.partition("integration/spark/")[2]
        if not name:
            return nodeid
        return "Spark: jobs and sink" if name.startswith(JOBS_AND_SINK) else "Spark: the rest"

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Forgets what is done: else each test that ends is followed by a look at all that ended before."""
        nodeid = self.registered_collections[node][item_index]
        scope = self._split_scope(nodeid)
        unit = self.assigned_work[node][scope]
        unit[nodeid] = True
        if all(unit.values()):
            del self.assigned_work[node][scope]
        self._reschedule(node)

    def _assign_work_unit(self, node: Any) -> None:
        """As it was, but that it need not look through all tests for each of them."""
        scope, unit = self.workqueue.popitem(last=False)
        self.assigned_work[node][scope] = unit
        if node not in self._places:
            self._places[node] = {nodeid: at for at, nodeid in enumerate(self.registered_collections[node])}
        node.send_runtest_some([self._places[node][nodeid] for nodeid, is_done in unit.items() if not is_done])


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneAtATime:
    return OneAtATime(config, log)

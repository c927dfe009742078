"""The fixture that users get with `pip install goqueue`, in a pytest of its own."""

import tomllib
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[3]
PLUGIN = "goqueue.testing.pytest_plugin"

TESTS = """
    import asyncio
    import sys
    import pytest

    def test_nothing_heavy_was_loaded():
        assert "goqueue.testing" in sys.modules
        assert [name for name in sys.modules if name.startswith(("goqueue.broker", "aiokafka"))] == []

    async def publish_and_wait(b):
        await b.create_topic("orders")
        await b.publish("orders", b"hello", delay="3 days")
        await b.advance("3 days")
        return [message.value for message in await b.receive("orders")]

    def test_a_scenario(goqueue_broker):
        assert asyncio.run(publish_and_wait(goqueue_broker)) == [b"hello"]

    def test_two_loops_one_after_the_other(goqueue_broker):
        assert asyncio.run(publish_and_wait(goqueue_broker)) == [b"hello"]
        with asyncio.Runner() as runner:
            lag = runner.run(goqueue_broker.lag("orders"))
            assert lag.leased == 1
            runner.run(goqueue_broker.publish("orders", b"again"))

    def test_a_broker_of_its_own(goqueue_broker):
        assert asyncio.run(goqueue_broker.topics()) == []

    def test_a_broker_that_nobody_asks(goqueue_broker):
        pass

    @pytest.mark.goqueue(now="2030-01-01T00:00:00Z", kafka=True)
    def test_options(goqueue_broker):
        async def scenario():
            async with goqueue_broker as b:
                assert b.now_ms == 1893456000000
                assert b.kafka.startswith("127.0.0.1:")

        asyncio.run(scenario())
"""


def test_the_fixture_gives_each_test_its_own_broker_and_costs_others_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    options = ["--disable-plugin-autoload", "-p", PLUGIN, "-p", "no:cacheprovider", "-W", "error", "--strict-markers"]
    pytester.runpytest_subprocess(*options).assert_outcomes(passed=6)


def test_the_plugin_is_announced() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"goqueue": PLUGIN}

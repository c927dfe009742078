"""What all tests share: random examples that can be had again."""

import secrets

import pytest
from hypothesis import settings

settings.register_profile("goqueue", deadline=None, print_blob=True)
settings.load_profile("goqueue")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed here, before the workers start, so that one number repeats the whole run."""
    if config.getoption("hypothesis_seed") is None:
        config.option.hypothesis_seed = str(secrets.randbelow(2**32))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if terminalreporter.stats.get("failed"):
        seed = config.getoption("hypothesis_seed")
        terminalreporter.write_line(f"repeat the random examples with: make test ARGS=--hypothesis-seed={seed}")

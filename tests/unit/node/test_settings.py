"""Settings: who wins, what is refused, and that the documentation tells the truth."""

from pathlib import Path

import pytest

from goqueue.model.errors import InvalidSettings
from goqueue.model.topics import TopicOptions
from goqueue.node.settings import SPECS, Settings, read_settings
from goqueue.telemetry.logs import LogFormat, LogLevel

ROOT = Path(__file__).parents[3]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "goqueue.toml"


def problems(flags: dict[str, str], config: Path | None = None, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(InvalidSettings) as caught:
        read_settings(flags, config=str(config) if config else None, environ=environ or {})
    return str(caught.value).splitlines()


def test_without_anything_the_defaults_hold() -> None:
    settings = read_settings({}, environ={"HOME": "/nowhere"})
    assert settings == Settings()
    assert settings.data_dir == Path("data")
    assert settings.maintenance_interval_ms == 30_000


def test_the_defaults_of_a_topic_are_those_of_the_model() -> None:
    assert Settings().topic_defaults() == TopicOptions()


def test_every_storage_setting_reaches_the_topics() -> None:
    changed = {
        "durability": "os",
        "cleanup": "compact",
        "segment_bytes": "1MiB",
        "segment_ms": "2s",
        "retention_ms": "3s",
        "retention_bytes": "4KiB",
    }
    assert read_settings(changed, environ={}).topic_defaults() == TopicOptions(
        durability="os",
        cleanup_policy="compact",
        segment_bytes=1 << 20,
        segment_ms=2000,
        retention_ms=3000,
        retention_bytes=4096,
    )


@pytest.mark.parametrize(
    ("raw", "address"),
    [("127.0.0.1:9092", ("127.0.0.1", 9092)), ("host:0", ("host", 0)), ("[::1]:5", ("::1", 5))],
)
def test_an_address_is_a_host_and_a_port(raw: str, address: tuple[str, int]) -> None:
    assert read_settings({"kafka": raw}, environ={}).kafka == address


@pytest.mark.parametrize("raw", ["", "host", "host:", ":x", "host:65536", "host:-1"])
def test_what_is_no_address_is_refused(raw: str) -> None:
    assert len(problems({"kafka": raw})) == 1


def test_flags_win_over_environment_over_file_over_defaults(config: Path) -> None:
    config.write_text('segment_ms = "1d"\nretention_ms = "2d"\nlog_level = "error"\nretention_bytes = -1\n')
    environ = {"GOQUEUE_RETENTION_MS": "3d", "GOQUEUE_LOG_LEVEL": "warning"}
    settings = read_settings({"log_level": "debug"}, config=str(config), environ=environ)
    day_ms = 86_400_000
    assert (settings.segment_ms, settings.retention_ms, settings.log_level) == (day_ms, 3 * day_ms, LogLevel.DEBUG)
    assert settings.log_format is LogFormat.AUTO


def test_the_environment_may_name_the_file_and_the_flag_wins(config: Path, tmp_path: Path) -> None:
    config.write_text('log_level = "error"\n')
    other = tmp_path / "other.toml"
    other.write_text('log_level = "debug"\n')
    environ = {"GOQUEUE_CONFIG": str(config)}
    assert read_settings({}, environ=environ).log_level is LogLevel.ERROR
    assert read_settings({}, config=str(other), environ=environ).log_level is LogLevel.DEBUG


def test_all_problems_are_reported_at_once(config: Path) -> None:
    config.write_text('segment_bytes = "64MB"\nsegmnt_ms = 3\nsegment_ms = true\n')
    environ = {"GOQUEUE_LOG_LEVEL": "loud", "GOQUEUE_DURABILTY": "os", "GOQUEUE_ZZZ": "1"}
    assert problems({"retention_bytes": "-2"}, config, environ) == [
        f"{config}: segmnt_ms: unknown setting, did you mean segment_ms?",
        f'{config}: segment_bytes = "64MB": expected bytes such as 64MiB (at least 1MiB, at most 1GiB)',
        f"{config}: segment_ms = True: expected a duration such as 1500ms, 30s or 7d (at least 1s)",
        "GOQUEUE_DURABILTY: unknown setting, did you mean GOQUEUE_DURABILITY?",
        "GOQUEUE_ZZZ: unknown setting",
        'GOQUEUE_LOG_LEVEL = "loud": expected one of debug, info, warning, error',
        '--retention-bytes = "-2": expected bytes such as 64MiB (at least 1B), or -1 for no limit',
    ]


def test_a_default_of_more_partitions_than_there_may_be_is_a_problem() -> None:
    assert read_settings({"default_partitions": "7", "partitions_max": "7"}, environ={}).default_partitions == 7
    assert problems({"default_partitions": "8", "partitions_max": "7"}) == [
        "default_partitions = 8: more than partitions_max = 7"
    ]
    for wrong in ("0", "10001", "many"):
        assert problems({"partitions_max": wrong}) == [
            f'--partitions-max = "{wrong}": expected a whole number (1 to 10000)'
        ]


def test_a_wrong_value_is_reported_even_where_a_stronger_source_hides_it(config: Path) -> None:
    config.write_text('log_level = "loud"\n')
    assert problems({"log_level": "info"}, config) == [
        f'{config}: log_level = "loud": expected one of debug, info, warning, error'
    ]


def test_a_file_that_cannot_be_read_is_a_problem_beside_others(config: Path) -> None:
    assert problems({"log_level": "loud"}, config)[0] == f"{config}: cannot be read: No such file or directory"
    config.write_text("segment_ms = = 3\n")
    assert problems({}, config)[0].startswith(f"{config}: is not TOML: ")
    config.write_bytes(b"\xff\xfe")
    assert problems({}, config)[0].startswith(f"{config}: is not TOML: ")


def test_variables_of_clients_and_of_kubernetes_are_left_alone() -> None:
    environ = {
        "GOQUEUE_SERVER": "http://localhost",
        "GOQUEUE_CONTEXT": "local",
        "GOQUEUE_API_KEY": "secret",
        "GOQUEUE_SERVICE_HOST": "10.0.0.1",
        "GOQUEUE_SERVICE_PORT_KAFKA": "9092",
        "GOQUEUE_PORT": "tcp://10.0.0.1:9092",
        "GOQUEUE_HEADLESS_PORT_9092_TCP_ADDR": "10.0.0.1",
    }
    assert read_settings({}, environ=environ) == Settings()


def test_the_documentation_lists_every_setting_with_its_true_default() -> None:
    rows = [
        f"| `{spec.name}` | {f'`{spec.default}`' if spec.default else 'none'} | {spec.kind.expected} | {spec.help} |"
        for spec in SPECS
    ]
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    table = [line for line in page.splitlines() if line.startswith("| `")]
    assert table == rows, "the table in docs/settings.md should read:\n" + "\n".join(rows)

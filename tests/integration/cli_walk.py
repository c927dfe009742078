"""A walk through all commands, in an order in which each has something to do. What begins with { is filled in."""

from collections.abc import Callable
from typing import Any, NamedTuple

Check = Callable[[Any], bool]


class Step(NamedTuple):
    words: str
    """As typed, but for values with spaces, which have + there."""
    shown: str
    """Part of what a person sees; with a code, part of the reason on standard error."""
    told: Check | None
    """Whether JSON says what it should; None: this command has only one shape."""
    code: int = 0
    stdin: str = ""
    is_lines: bool = False
    """JSON is one object a line."""


def _named(name: str, field: str = "name") -> Check:
    return lambda found: name in {each[field] for each in found}


def _has(**facts: Any) -> Check:
    return lambda found: facts.items() <= found.items()


def _never(found: Any) -> bool:
    """For a command that is refused here, and would have a shape if it were not."""
    raise AssertionError(f"refused, and yet it tells {found}")


def _bench(kind: str) -> Step:
    words = f"bench {kind} --kafka {{kafka}} --messages 50"
    return Step(words, f"goqueue bench {kind}", lambda found: found["bench"] == kind and bool(found["figures"]))


SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}'

STEPS = (
    Step("serve --data-dir {data}", "", None, code=1),
    # -- topics and messages
    Step(
        "topic create {t} -p 1 -r 168h --retention-bytes 10GiB", "made topic {t} with 1 partition", _has(partitions=1)
    ),
    Step("topic list", "NAME", lambda found: "partitions" in found[0]),
    Step("produce {t} -m one -k k -H a=b", "{t}/0/0", lambda found: found[0]["offset"] == 0, is_lines=True),
    Step("produce {t}", "2 messages published", lambda found: len(found) == 2, stdin="two\nthree\n", is_lines=True),
    Step("consume {t} --from-beginning", "three", lambda found: found[0]["headers"] == {"a": "b"}, is_lines=True),
    Step("topic describe {t}", "retention.ms=604800000", lambda found: found["options"]["retention.ms"] == "604800000"),
    Step("topic trim {t} --before-time -1h --force", "threw away 0 messages", _has(dry_run=False)),
    Step("topic purge {t} --dry-run", "3 messages would go", _has(dry_run=True)),
    Step("top -n 1", "MSG/S", lambda found: "messages_per_second" in found["topics"][0]),
    Step("topic alter {t} --partitions 2", "2 partitions", _has(partitions=2)),
    # -- groups
    Step(
        "consume {t} -p 0 --group {t}-g --limit 2 --ack reject",
        "two",
        lambda found: [each["value"] for each in found] == ["one", "two"],
        is_lines=True,
    ),
    Step("group list", "{t}-g", lambda found: "members" in found[0]),
    Step("group describe {t}-g", "Lag:", _has(id="{t}-g", total_lag=1)),
    Step("group offsets {t}-g", "{t}", lambda found: found[0]["offset"] == 2),
    Step(
        "group reset-offsets {t}-g --topic {t} --to-latest --dry-run",
        "nothing was changed",
        lambda found: found["dry_run"] is True,
    ),
    Step("replay {t}-g {t} --from earliest", "again", _has(messages=2)),
    Step("group settle {t}-g {t} 0/2 extend --for 10m", "is not held by anybody now", _never, code=4),
    Step("group fork {t}-g {t}-f", "{t}-f is a fork of {t}-g", _has(forked=True)),
    Step("group settle {t}-f {t} 0/2 ack", "0/2: ack for {t}-f", _has(action="ack")),
    Step("group forks {t}-g", "{t}-f", lambda found: [each["only_fork"] for each in found] == [1]),
    Step("group compare {t}-g {t}-f", "{t}/0", lambda found: found[0]["only_with"] == [[2, 2]]),
    Step("group promote {t}-g {t}-f", "goes on as {t}-f did", _has(promoted=True)),
    Step("group pause {t}-g", "is paused", lambda found: found["options"] == {"delivery": "paused"}),
    Step("group resume {t}-g", "delivered to again", lambda found: found["options"] == {}),
    Step("topic pause {t}", "is paused", lambda found: found["options"]["delivery"] == "paused"),
    Step("topic resume {t}", "is delivered again", lambda found: "delivery" not in found["options"]),
    Step("topic compact {t}", "set its cleanup.policy to compact first", _never, code=2),
    # -- dead letters
    Step("dlq list {t}", "rejected", lambda found: [each["value"] for each in found] == ["one", "two"]),
    Step("dlq show {t} 0/0", "Value:", _has(value="one", reason="rejected")),
    Step("dlq redrive {t} --contains two --place 0/0 --dry-run", "0 messages", _has(redriven=0)),
    Step("dlq redrive {t} --place 0/1", "1 message sent back", _has(redriven=1)),
    Step("dlq stop {t}", "done, 1 sent back", _has(state="done")),
    Step("dlq discard {t} 0/0", "discarded {t}/0/0", _has(discarded=True)),
    Step("dlq purge {t} --force", "away", lambda found: found["topic"] == "{t}"),
    # -- what comes later
    Step("produce {t} later -p 0 --delay 1h", "comes at", lambda found: found[0]["delayed"] is True, is_lines=True),
    Step("delay list {t}", "pending", lambda found: len(found) == 1),
    Step("delay reschedule {t} {delayed} --at +2h", "comes at", _has(state="pending")),
    Step("delay cancel {t} {delayed}", "cancelled", _has(cancelled=True)),
    Step("schedule set {t}-s {t} --cron 0+7+*+*+* -m x", "publishes to {t}", _has(cron="0 7 * * *")),
    Step("schedule list", "{t}-s", lambda found: "cron" in found[0]),
    Step("schedule run {t}-s", "published {t}/", _has(topic="{t}")),
    Step("schedule pause {t}-s", "is paused", _has(paused=True, next_run=None)),
    Step("schedule resume {t}-s", "runs next at", _has(paused=False)),
    Step("schedule delete {t}-s", "deleted schedule", _has(deleted=True)),
    # -- what happened
    Step("trace list -n 5", "STATUS", lambda found: 0 < len(found) <= 5),
    Step("trace search --topic {t} --key k", "{t}/0/0", lambda found: found[0]["topic"] == "{t}"),
    Step("trace get {trace}", "Steps", lambda found: found["events"] != []),
    Step("trace stats", ":", lambda found: found != {}),
    Step("why {t}/0/0", "Answer:", _has(topic="{t}", offset=0)),
    # -- schemas
    Step("schema register {t}-value -f -", "version 1", _has(version=1), stdin=SCHEMA),
    Step("schema check {t}-value -f -", "could be registered", _has(is_compatible=True), stdin=SCHEMA),
    Step("schema list {t}-value", "AVRO", lambda found: found[0]["version"] == 1),
    Step("schema get {t}-value", "Version:", _has(version=1)),
    Step("schema config {t}-value --set FULL", "FULL", _has(compatibility="FULL")),
    Step("schema delete {t}-value --force", "deleted of", _has(versions=[1])),
    # -- the cluster
    Step("cluster info", "Cluster id:", lambda found: found["topics"] > 0),
    Step("cluster health", "pass", _has(status="pass")),
    Step("cluster nodes", "yes", lambda found: found[0]["is_alive"]),
    Step("cluster status", "", lambda found: found["nodes"] == 1),
    Step("cluster partitions", "", lambda found: len(found) > 0),
    Step("cluster events", "", lambda found: found is not None),
    Step("cluster ready", "all replicas are in sync", _has(ready=True)),
    Step("cluster elect {t} 0 --unclean", "there is no other copy", _never, code=4),
    Step("cluster recover", "it has no etcd", _never, code=4),
    Step("cluster dev --etcd-binary {data}", "", None, code=2),
    # -- configuration
    Step("config set-context here --server {url} --timeout 5s", "made context here", _has(server="{url}")),
    Step("config set-context there --server {url}", "made context there", _has(name="there")),
    Step("config use-context there", "from now on", lambda found: found["current-context"] == "there"),
    Step("config get-contexts", "CURRENT", _named("there")),
    Step("config view", "now:", lambda found: found["now"]["server"] == "{url}"),
    Step("config delete-context there", "deleted context", _has(deleted=True)),
    # -- measuring and the rest
    _bench("produce"),
    _bench("consume"),
    _bench("queue"),
    _bench("latency"),
    Step("doctor --data-dir {data}", "WHAT TO DO", _named("disk space", "check")),
    Step("repair --data-dir stopped --dry-run", "nothing to repair", _has(dry_run=True, restored=[])),
    Step("admin reset --data-dir stopped", "at its next start the node makes a new first key", _has(reset=True)),
    Step("version --remote", "server", lambda found: found["client"] == found["server"]),
    Step("completion bash", "complete -F", None),
    Step("completion zsh", "#compdef goqueue", None),
    Step("completion fish", "complete -c goqueue", None),
    Step("reference", "## goqueue produce", None),
    # -- accounts
    Step(
        "user create {t}-u --role producer --password-file -", "User:{t}-u", _has(roles=["producer"]), stdin="secret\n"
    ),
    Step("user list", "MECHANISMS", _named("{t}-u")),
    Step("user change {t}-u --role consumer", "consumer", _has(roles=["consumer"])),
    Step("user delete {t}-u", "deleted user {t}-u", _has(success=True)),
    Step("key create {t}-k --role viewer --expires-in 1h", "gqk_k", lambda found: found["key"].startswith("gqk_k")),
    Step("key list", "EXPIRES", _named("{t}-k")),
    Step("key rotate k0", "there is no key", _never, code=3),
    Step("key delete k0", "there is no key", _never, code=3),
    Step("admin rekey", "has no master key", _never, code=2),
    Step("acl create User:{t} read --name {t}*", "User:{t}", _has(effect="allow", resource_name="{t}*")),
    Step("acl list", "PRINCIPAL", _named("User:{t}", "principal")),
    Step("acl delete r0", "there is no rule", _never, code=3),
    Step("quota set --user {t} --producer-byte-rate 7000", "7000", _has(producer_byte_rate=7000)),
    Step("quota set --user {t} --producer-byte-rate none --request-rate 5000", "5000", _has(producer_byte_rate=None)),
    Step("quota set --user {t} --request-rate 5000", "5000", _has(user="{t}", request_rate=5000)),
    Step("quota list", "PRODUCER_BYTE_RATE", _named("{t}", "user")),
    Step("quota describe --user {t} --client-id app", "5000", _has(client_id="app", request_rate=5000)),
    Step("quota delete --user {t}", "{t}", _has(success=True)),
    Step("tenant create {t}x --name Acme --meta plan=free", "Acme", _has(id="{t}x", status="active")),
    Step("tenant list", "STATUS", _named("{t}x", "id")),
    Step("tenant describe {t}x", "Acme", _has(name="Acme")),
    Step("tenant update {t}x --description small", "small", _has(description="small")),
    Step("tenant quotas {t}x --max-topics 5", "5", _has(max_topics=5)),
    Step("tenant quotas {t}x --max-topics none", "max_topics", _has(max_topics=None)),
    Step("tenant usage {t}x", "topics", _has(topics=0)),
    Step("tenant suspend {t}x --reason unpaid", "tenant {t}x is suspended", _has(status="suspended")),
    Step("tenant activate {t}x", "tenant {t}x is active", _has(status="active")),
    Step("tenant disable {t}x", "tenant {t}x is disabled", _has(status="disabled")),
    Step("tenant delete {t}x --force", "tenant {t}x is deleting", _has(status="deleting")),
    Step("audit", "it has no audit trail", _never, code=3),  # the node of the walk is open
    # -- and away with it
    Step("group delete {t}-g --yes", "deleted group", _has(deleted=True)),
    Step("topic delete {t} --force", "deleted topic {t}", _has(deleted=True)),
)

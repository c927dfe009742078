#!/usr/bin/env bash
# Runs librdkafka's own tests, unmodified, against a fresh node of this checkout: they know Kafka better than we do.
# tools/foreign/README.md says how to use it.
set -euo pipefail

sources=${1:?usage: tools/foreign/librdkafka.sh DIRECTORY_OF_SOURCES [TEST...], a TEST being a number such as 0011}
sources=$(cd "$sources" && pwd)
shift
checkout=$(cd "$(dirname "$0")/../.." && pwd)
limit_s=${LIMIT_S:-900}
jobs=${JOBS:-$(nproc)}
address=${ADDRESS:-127.0.9.1}
export TEST_CONSUMER_GROUP_PROTOCOL=${GROUP_PROTOCOL:-classic}
export TEST_KAFKA_VERSION=${KAFKA_VERSION:-4.0.0}

# Tests that say nothing about one plain node. Those that never connect, or only to librdkafka's own mock, the runner leaves out by itself (-L).
declare -A left_out=(
    [0028]="known issue of librdkafka" [0047]="known issue of librdkafka" [0079]="known issue of librdkafka"
    [0101]="needs three brokers with racks"
    [0097]="needs TLS" [0109]="needs ACLs half way" [0115]="needs ACLs" [0119]="needs ACLs"
    [0126]="needs SASL" [0128]="needs SASL" [0135]="needs SASL" [0142]="needs SASL"
    [0139]="connects to a mock only" [0150]="connects to a mock only"
)

# The test of the admin client stops at ACLs, so its other parts are run one by one.
admin_parts=(
    CreateTopics DeleteTopics CreatePartitions do_test_AlterConfigs do_test_IncrementalAlterConfigs do_test_DescribeConfigs
    DeleteRecords ListConsumerGroups DescribeConsumerGroups DescribeTopics DescribeCluster DeleteGroups
    DeleteConsumerGroupOffsets ListOffsets AlterConsumerGroupOffsets ListConsumerGroupOffsets
)

work=$(mktemp -d)
nodes=()
stop() {
    local node
    for node in "${nodes[@]}"; do kill "$node" 2>/dev/null && wait "$node" || true; done
    rm -rf "$work"
}
trap stop EXIT

build() {
    cd "$sources"
    [ -e Makefile.config ] || ./configure --disable-gssapi --disable-curl
    make -j"$jobs" libs
    make -j"$jobs" -C tests build
}

# start NAME on|off: a node of its own, which makes topics that are asked for, or does not.
start() {
    local name=$1 creates=$2 kafka
    GOQUEUE_CONFIG='' "$checkout/.venv/bin/goqueue" serve --dev --data-dir "$work/$name" --ready-file "$work/$name.ready" \
        --kafka "$address:0" --http "$address:0" --grpc "$address:0" \
        --default-partitions 4 --auto-create-topics "$creates" --group-initial-rebalance-delay-ms 3s >"$logs/node-$name.log" 2>&1 &
    nodes+=($!)
    until [ -e "$work/$name.ready" ]; do
        kill -0 $! 2>/dev/null || { cat "$logs/node-$name.log" >&2; exit 1; }
        sleep 0.1
    done
    kafka=$("$checkout/.venv/bin/python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["kafka"])' "$work/$name.ready")
    printf '%s\n' "$kafka" >"$work/$name.brokers"
    # A prefix for each run: some tests look for topics by a pattern and would find those of the test before.
    printf '%s\n' "metadata.broker.list=$kafka" "test.topic.random=true" "test.timeout.multiplier=2" >"$work/$name.conf"
}

# What a test asks for that a single node without security has not: then it says nothing about us.
unfit='s/^FAILED(.*[0-9]s) .*copies, but there is one node.*/LEFT_OUT\1 needs three brokers/'
unfit+=';s/^FAILED(.*[0-9]s) .*KAFKA_PATH.* must be set.*/LEFT_OUT\1 needs KAFKA_PATH, a directory with bin\/kafka-topics.sh of Kafka/'

# run TEST SCENARIO [SUBTEST]: a row for each entry of the runner's table that belongs to this file and this scenario.
run() {
    local number=$1 scenario=$2 part=${3:-} log="$logs/$1-$2${3:+-$3}.log" rows
    [ -z "$part" ] || local -x SUBTESTS=$part
    # In braces, since the shell would tell of every runner that aborts, as it does when a test fails.
    {
        RDKAFKA_TEST_CONF="$work/$scenario.conf" BROKERS=$(cat "$work/$scenario.brokers") TESTS=$number \
            timeout -k 5 "$limit_s" stdbuf -oL ./test-runner -p1 -L ${QUICK:+-Q} -s "$scenario" >"$log" 2>&1 || true
    } 2>/dev/null
    # The runner skips without a reason what is of another scenario, and with one what another broker would run.
    rows=$(sed 's/\x1b\[[0-9;]*m//g' "$log" |
        sed -nE 's/^\| +([0-9]{4}_[a-z0-9_]+) +\| +([A-Z]+) +\| +([0-9.]+s) *\| *(.*)$/\2 \1 \3 \4/p' |
        grep -vE '^SKIPPED [^ ]+ [^ ]+ *(Filtered due to negative test flags)?$' || true)
    if [ -n "$rows" ]; then
        printf '%s\n' "$rows" | sed -E "$unfit; s/^SKIPPED/LEFT_OUT/; s/^RUNNING/FAILED/; s/^([A-Z_]+ [^ ]+)/\1${part:+:$part}/"
    elif ! grep -q SUMMARY "$log"; then
        printf 'FAILED %s %ss no result: it hung or crashed\n' "$number" "$limit_s"
    elif [ "$scenario" = default ] && ! wants_scenario "$number"; then
        printf 'LEFT_OUT %s - connects to a mock or to nothing\n' "$number"
    fi
}

wants_scenario() { tr '\n' ' ' <test.c | sed 's/_TEST(/\n&/g' | grep "^_TEST($1_" | grep -q noautocreate; }

logs=${LOGS:-$work/logs}
mkdir -p "$logs"
build >"$logs/build.log" 2>&1 || { tail -20 "$logs/build.log" >&2; exit 1; }
start default on
start noautocreate off

cd "$sources/tests"
export LD_LIBRARY_PATH=$sources/src:$sources/src-cpp
[ $# -gt 0 ] || set -- $(printf '%s\n' 0*-*.c* | cut -c1-4 | sort -u)
for number; do
    if [ -n "${left_out[$number]:-}" ]; then
        printf 'LEFT_OUT %s - %s\n' "$number" "${left_out[$number]}"
        continue
    fi
    if [ "$number" = 0081 ] && [ -z "${SUBTESTS:-}" ]; then
        for part in "${admin_parts[@]}"; do run "$number" default "$part"; done
        continue
    fi
    run "$number" default
    if wants_scenario "$number"; then run "$number" noautocreate; fi
done | while read -r state name time why; do
    printf '%s\n' "$state" >>"$work/states"
    printf '%-9s %-45s %9s %s\n' "$state" "$name" "$time" "$why"
done
count() { grep -cx "$1" "$work/states" || true; }
printf '%s passed, %s failed, %s left out\n' "$(count PASSED)" "$(count FAILED)" "$(count LEFT_OUT)"
[ "$(count FAILED)" = 0 ]

"""Groups: a partition has one owner in one generation, a committed offset does not fall back, and members together get
every record that their commits are past.

Operations: `assigned` is answered with group, member, generation and `partitions`; `commit` asks group, partition and
offset; `committed` asks group and partition and is answered with the offset (-1: none); `consumed` is answered with
group, partition, `first` and `last`: the offsets of records that stand one behind another, without gaps in the log.

The kinds of faults: two owners, offset back, phantom offset, skipped.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tools.nemesis.history import FAIL, Fault, Operation

NONE = -1


def check_groups(history: Iterable[Operation]) -> list[Fault]:
    owners: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    commits: dict[tuple[str, Any], list[Operation]] = defaultdict(list)
    asked: dict[tuple[str, Any], list[Operation]] = defaultdict(list)
    consumed: dict[tuple[str, Any], set[int]] = defaultdict(set)
    for operation in history:
        if operation.what == "assigned" and operation.is_ok:
            answer = operation.answer
            for partition in answer["partitions"]:
                owners[answer["group"], answer["generation"], _name(partition)].add(answer["member"])
        elif operation.what == "commit":
            commits[operation.asked["group"], _name(operation.asked["partition"])].append(operation)
        elif operation.what == "committed" and operation.is_ok:
            asked[operation.asked["group"], _name(operation.asked["partition"])].append(operation)
        elif operation.what == "consumed" and operation.is_ok:
            answer = operation.answer
            got = range(answer["first"], answer["last"] + 1)
            consumed[answer["group"], _name(answer["partition"])].update(got)
    found = [
        Fault("two owners", f"{partition} of group {group} in generation {generation}: {sorted(members)}")
        for (group, generation, partition), members in owners.items()
        if len(members) > 1
    ]
    for place in sorted(asked):
        found += _offsets(place, commits[place], asked[place])
    for place in sorted(consumed):
        found += _skipped(place, commits[place], consumed[place])
    return found


def _name(partition: Any) -> Any:
    return tuple(partition) if isinstance(partition, list) else partition


def _offsets(place: Any, commits: Sequence[Operation], asked: Sequence[Operation]) -> Iterator[Fault]:
    """What was told must be an offset that somebody committed, and none that a later commit had replaced by then. One
    that nobody answered may be heard at any time after it was sent."""
    for question in asked:
        told = question.answer["offset"]
        before = [commit for commit in commits if commit.is_ok and commit.ended < question.began]
        if told == NONE:
            if before:
                yield Fault("offset back", f"{place}: none, after {before[-1].asked['offset']} was committed")
            continue
        may_be = [
            commit
            for commit in commits
            if commit.asked["offset"] == told and commit.outcome != FAIL and commit.began < question.ended
        ]
        if not may_be:
            yield Fault("phantom offset", f"{place}: {told} was committed by nobody")
        elif all(commit.is_ok and any(commit.ended < later.began for later in before) for commit in may_be):
            newest = max(before, key=lambda commit: commit.began).asked["offset"]
            yield Fault("offset back", f"{place}: {told}, after {newest} was committed")


def _skipped(place: Any, commits: Sequence[Operation], consumed: set[int]) -> Iterator[Fault]:
    committed = max((commit.asked["offset"] for commit in commits if commit.is_ok), default=0)
    missing = [offset for offset in range(committed) if offset not in consumed]
    if missing:
        text = f"{len(missing)} records, the first at {missing[0]}, and {committed} is committed"
        yield Fault("skipped", f"{place}: no member got {text}")

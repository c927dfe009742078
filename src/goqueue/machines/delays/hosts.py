"""A partition's log and the ledger of its delays do not lose their ends together when the power fails. After a load the
ledger follows the log: what it knows of places that the log has lost is dropped, and free places of which it has lost
the records are noted, so that neither is taken for something else later.
"""

from array import array
from collections.abc import Iterator

from msgspec.structs import replace

from goqueue.machines.delays.commands import NO_SEQUENCE, RECURRING, FollowHost
from goqueue.machines.delays.facts import (
    UNKEPT,
    Firing,
    Removed,
    TargetKept,
    packed,
    schedule_keys,
    target_key,
    unpacked,
)
from goqueue.machines.delays.state import DelayState
from goqueue.machines.delays.target import SEQUENCE_MASK, Target
from goqueue.machines.machine import Fact

DROPPED_MAX = 50_000
"""Places in one go: their tombstones have to fit into one batch."""


def decide_follow(state: DelayState, command: FollowHost) -> tuple[list[Fact], bool]:
    target = state.target
    facts: list[Fact] = []
    epoch, up_to = target.epoch, target.up_to
    if up_to >= command.end_offset:
        lost = _lost(target, command.end_offset)
        facts += map(Removed, schedule_keys(target.key, lost[:DROPPED_MAX]))
        if len(lost) > DROPPED_MAX:
            return facts, True
        epoch, up_to = command.epoch, command.end_offset - 1
    facts += _jobs(target, command.end_offset, command.next_sequence)
    sequence = _sequence_after(target, facts, command.next_sequence)
    if (epoch, up_to, sequence) != (target.epoch, target.up_to, target.sequence):
        facts.append(TargetKept(target.topic, *target.key, up_to, sequence, epoch))
    facts += _unkept(target, command, up_to)
    return facts, False


def _lost(target: Target, end_offset: int) -> list[int]:
    """Offsets of schedules whose places are gone, and of those whose tombstones are still to be written: later these
    would remove what stands there by then.
    """
    waiting = [offset for offset, _ in target.index.walk(end_offset - 1)]
    doomed = list(reversed(target.doomed)) if any(offset >= end_offset for offset in target.doomed) else []
    return [*doomed, *waiting]


def _jobs(target: Target, end_offset: int, next_sequence: int) -> Iterator[Fact]:
    """Unfinished jobs as they have to be now: without records whose places are lost, and in a row behind what the log
    has of our producer. Those that are in the log, or begun there, stay as they are.
    """
    expected = next_sequence
    for job in target.jobs.values():
        if expected == NO_SEQUENCE:
            expected = job.sequence
        offsets = unpacked("q", job.offsets)
        if job.sequence != expected and _is_before(job.sequence, expected):
            job_end = (job.sequence + len(offsets)) & SEQUENCE_MASK
            expected = job_end if _is_before(expected, job_end) else expected
            continue
        kept = [number for number, offset in enumerate(offsets) if offset == RECURRING or offset < end_offset]
        if len(kept) < len(offsets):
            yield from map(Removed, schedule_keys(target.key, (each for each in offsets if each >= end_offset)))
        if not kept:
            yield Removed(job.key())
        elif len(kept) < len(offsets) or job.sequence != expected:
            numbers = offsets, unpacked("q", job.ledger_offsets), unpacked("q", job.due_ms)
            some = [packed(array("q", map(column.__getitem__, kept))) for column in numbers]
            yield replace(job, sequence=expected, offsets=some[0], ledger_offsets=some[1], due_ms=some[2])
        expected = (expected + len(kept)) & SEQUENCE_MASK


def _sequence_after(target: Target, facts: list[Fact], next_sequence: int) -> int:
    """Behind all jobs, those of `facts` in the place of those that they replace."""
    jobs = dict(target.jobs)
    for fact in facts:
        if isinstance(fact, Firing):
            jobs[fact.number] = fact
    gone = {fact.raw for fact in facts if isinstance(fact, Removed)}
    ends = [(job.sequence + job.count) & SEQUENCE_MASK for job in jobs.values() if job.key() not in gone]
    if not ends:
        return target.sequence if next_sequence == NO_SEQUENCE else next_sequence
    end = ends[-1]
    return next_sequence if next_sequence != NO_SEQUENCE and _is_before(end, next_sequence) else end


def _is_before(sequence: int, other: int) -> bool:
    """Sequences wrap: what is less than half of them ahead comes later."""
    return 0 < (other - sequence) & SEQUENCE_MASK <= SEQUENCE_MASK // 2


def _unkept(target: Target, command: FollowHost, up_to: int) -> list[Fact]:
    known = {offset for offset in target.unkept if command.repeated_from <= offset <= up_to}
    unkept = known | {offset for offset in command.unkept if offset > up_to}
    if unkept == target.unkept:
        return []
    return [target.unkept_fact(unkept) if unkept else Removed(target_key(UNKEPT, target.key))]

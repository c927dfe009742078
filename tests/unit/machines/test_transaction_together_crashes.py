"""The walks of `test_transaction_crashes`, with producers that one writer ends together."""

from collections import Counter
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from goqueue.machines.transactions.commands import EndTogether
from goqueue.machines.transactions.facts import MarkSet, State
from goqueue.model.codes import Code
from tests.unit.machines.test_transaction_crashes import NAMES, WALKS, Fate, World, fates, take_a_step

WRITER = "w"


class TogetherWorld(World):
    def __init__(self) -> None:
        super().__init__()
        self.next_mark = 0
        self.marked = -1

    def ask(self, command: Any, fate: Fate = "fine") -> Any:
        # One append is one batch with one checksum: there is no half of it.
        if isinstance(command, EndTogether) and fate == "half appended":
            fate = "append failed"
        return super().ask(command, fate)

    def note(self, fact: Any) -> None:
        super().note(fact)
        if isinstance(fact, MarkSet):
            assert fact.mark > self.marked, "a mark has gone back"
            self.marked = fact.mark

    @rule(repeats=st.booleans(), is_stale=st.booleans(), commit=st.booleans(), fate=fates)
    def end_together(self, repeats: bool, is_stale: bool, commit: bool, fate: Fate) -> None:
        """Of all that is open; perhaps with a mark of before, perhaps with somebody who was overtaken."""
        open_now = {name: known for name in NAMES if (known := self.machine.get(name)) and known.state is State.ONGOING}
        members = [(name, *known.identity) for name, known in open_now.items()]
        if is_stale:
            members = [(name, producer_id, epoch - 1) for name, producer_id, epoch in members]
        mark = self.next_mark - 1 if repeats and self.next_mark else self.next_mark
        was_marked = self.marked
        reply = self.ask(EndTogether(WRITER, mark, commit, tuple(members)), fate)
        ended = {(name, known.serial): self.outcomes.get((name, known.serial)) for name, known in open_now.items()}
        assert len(set(ended.values())) <= 1, "torn apart"
        has_committed = True in ended.values()
        assert not (has_committed and was_marked >= mark), "committed twice under one mark"
        assert not has_committed or self.marked == mark, "committed without its mark"
        assert self.machine.mark(WRITER) == self.marked
        self.next_mark = self.marked + 1
        if reply is not None and reply.code is Code.NONE:
            assert reply.is_repeated == (commit and was_marked >= mark)
            for transaction in ended:
                self.acknowledged[transaction] = commit and not reply.is_repeated


def test_long_walks_keep_every_promise_with_what_ends_together() -> None:
    outcomes: Counter[bool] = Counter()
    for seed in range(WALKS):
        print("seed", seed)
        dice, world = Random(seed), TogetherWorld()
        world.start_all(0)
        for _ in range(60):
            if dice.random() < 0.1:
                fate: Fate = dice.choice(("fine", "fine", "fine", "reply lost", "append failed"))
                world.end_together(dice.random() < 0.2, dice.random() < 0.1, dice.random() < 0.8, fate)
                outcomes[world.marked >= 0] += 1
            take_a_step(world, dice)
            world.a_snapshot_rebuilds_the_same()
            world.an_acknowledged_outcome_stands()
            world.a_transaction_has_one_marker_in_a_partition()
            world.readers_of_committed_records_see_nothing_else()
        world.teardown()
    assert outcomes[True] > 2 * WALKS, "the walks do too little"


TogetherWorld.TestCase.settings = settings(max_examples=40, stateful_step_count=40)
TestTogether = TogetherWorld.TestCase

"""Members of a group that share a topic, commit, and ask what is committed. One of them comes and goes."""

from goqueue.client import ClientError, Consumer, Producer
from goqueue.model.errors import GoQueueError
from goqueue.testing.simulation import Process
from goqueue.testing.virtual_loop import let_pass
from tests.sim.storms.stage import REQUEST, Stage, Work, again_and_again

TOPIC, PARTITIONS, GROUP = "storm-shared", 4, "storm-members"
STAYS_S, VISITS_S = 1e9, 5.0


class Groups:
    name = "groups"

    async def prepare(self, stage: Stage) -> None:
        await stage.make_topic(TOPIC, PARTITIONS)

    def works(self, stage: Stage) -> dict[str, Work]:
        return {
            "group-feeder": lambda me: self._feed(stage, me),
            "member-0": lambda me: self._be_member(stage, me, STAYS_S),
            "member-1": lambda me: self._be_member(stage, me, VISITS_S),
        }

    async def finish(self, stage: Stage) -> None:
        """What members were told is all there is to judge."""

    async def _feed(self, stage: Stage, me: Process) -> None:
        async def life() -> None:
            async with Producer(stage.servers, delivery_timeout="8s", request_timeout=REQUEST, **me.ports) as producer:
                while not stage.is_ending:
                    await producer.send(TOPIC, b"x", partition=me.dice.randrange(PARTITIONS))
                    await let_pass(0.2)

        await again_and_again(stage, life)

    async def _be_member(self, stage: Stage, me: Process, stays_s: float) -> None:
        async def life() -> None:
            until_s = stage.sim.loop.time() + stays_s

            async def assigned(places: object) -> None:
                """Told of those that are new."""
                assert isinstance(places, (set, frozenset, list, tuple))
                offsets = consumer._offsets
                assert offsets is not None
                stage.book.begin(me.name, "assigned").ok(
                    group=GROUP,
                    member=offsets.member_id,
                    generation=offsets.member_epoch,
                    partitions=sorted([topic, partition] for topic, partition in places),
                )

            consumer = Consumer(
                stage.servers,
                TOPIC,
                group=GROUP,
                auto_commit=False,
                request_timeout=REQUEST,
                on_assigned=assigned,
                **me.ports,
            )
            async with consumer:
                while not stage.is_ending and stage.sim.loop.time() < until_s:
                    ends = {(each.topic, each.partition): each.offset + 1 for each in await consumer.poll(50, "500ms")}
                    await self._commit(stage, me, consumer, ends)

        await again_and_again(stage, life)

    async def _commit(self, stage: Stage, me: Process, consumer: Consumer, offsets: dict[tuple[str, int], int]) -> None:
        for place, offset in sorted(offsets.items()):
            asking = stage.book.begin(me.name, "commit", group=GROUP, partition=list(place), offset=offset)
            try:
                await consumer.commit({place: offset})
            except (ClientError, GoQueueError, OSError) as error:
                asking.unknown(error)  # an attempt before the last may have been heard
            else:
                asking.ok()
            asking = stage.book.begin(me.name, "committed", group=GROUP, partition=list(place))
            try:
                told = await consumer.committed(*place)
            except (ClientError, GoQueueError, OSError) as error:
                asking.fail(error)
            else:
                asking.ok(offset=-1 if told is None else told)

"""Messages for later, some of them cancelled, and a reader that sees when they come."""

from goqueue.client import Consumer
from goqueue.testing.simulation import Process
from goqueue.testing.virtual_loop import let_pass
from tests.sim.storms.stage import REQUEST, Http, NotDone, Records, Stage, Unanswered, Work, again_and_again

DELAY_S_MAX = 10.0
TOPIC, PARTITIONS = "storm-later", 2


class Delays:
    name = "delays"

    def __init__(self) -> None:
        self._last_due_s = 0.0

    async def prepare(self, stage: Stage) -> None:
        await stage.make_topic(TOPIC, PARTITIONS)

    def works(self, stage: Stage) -> dict[str, Work]:
        return {"delayer": lambda me: self._delay(stage, me), "delay-reader": lambda me: self._watch(stage, me)}

    async def _delay(self, stage: Stage, me: Process) -> None:
        number = 0
        async with Http(stage, me) as http:
            while not stage.is_ending:
                number += 1
                due_ms = stage.sim.now_ms() + int(me.dice.uniform(500, DELAY_S_MAX * 1000))
                self._last_due_s = max(self._last_due_s, due_ms / 1000)
                asking = stage.book.begin(me.name, "delay", topic=TOPIC, id=f"{number}", due=due_ms / 1000)
                message = {"value": f"{number}", "deliver_at": due_ms, "partition": number % PARTITIONS}
                try:
                    told = (await http.ask("POST", f"/topics/{TOPIC}/messages", {"messages": [message]}))["results"][0]
                except NotDone as error:
                    asking.fail(error)
                except Unanswered as error:
                    asking.unknown(error)
                else:
                    if told.get("error"):
                        asking.unknown(told["error"])
                    else:
                        asking.ok()
                        if me.dice.random() < 0.15:
                            await self._cancel(stage, http, f"{number}", told["partition"], told["offset"])
                await let_pass(me.dice.uniform(0.1, 0.5))

    async def _cancel(self, stage: Stage, http: Http, message_id: str, partition: int, offset: int) -> None:
        asking = stage.book.begin("delayer", "cancel", topic=TOPIC, id=message_id)
        try:
            await http.ask("DELETE", f"/topics/{TOPIC}/delayed/{partition}/{offset}")
        except NotDone as error:
            asking.fail(error)
        except Unanswered as error:
            asking.unknown(error)
        else:
            asking.ok()

    async def _watch(self, stage: Stage, me: Process) -> None:
        async def life() -> None:
            async with Consumer(stage.servers, TOPIC, request_timeout=REQUEST, **me.ports) as consumer:
                while not stage.is_ending or stage.sim.now_ms() / 1000 < self._last_due_s + 1:
                    for message in await consumer.poll(timeout="500ms"):
                        text = (message.value or b"").decode()
                        self._note(stage, me.name, {message.partition: [(message.offset, text)]})

        await again_and_again(stage, life)
        await let_pass(max(0.0, self._last_due_s + 1 - stage.sim.now_ms() / 1000))

    def _note(self, stage: Stage, process: str, records: Records) -> None:
        for number, several in records.items():
            for offset, value in several:
                place = {"topic": TOPIC, "id": value, "at": stage.sim.now_ms() / 1000, "place": f"{number}/{offset}"}
                stage.book.begin(process, "arrived", door="end").ok(**place)

    async def finish(self, stage: Stage) -> None:
        self._note(stage, "delay-end", await stage.read_all(TOPIC, PARTITIONS))

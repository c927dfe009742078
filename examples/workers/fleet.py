"""A fleet of workers on one machine, each a process of its own. One that dies is started again.

    make run
    goqueue produce parcels -m '{"address": "Ada, London"}'
    python examples/workers/fleet.py --workers 4

Ctrl-C stops all of them: each finishes what it holds.
"""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

WORKER = Path(__file__).with_name("worker.py")
AGAIN_S = 1.0
"""Before a worker that died is started again: a fleet that cannot connect does not spin."""


async def keep(servers: str, name: str, is_over: asyncio.Event) -> None:
    while not is_over.is_set():
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(WORKER), "--servers", servers, "--name", name, start_new_session=True
        )
        print(f"{name} is process {process.pid}", flush=True)
        ended, stopped = asyncio.create_task(process.wait()), asyncio.create_task(is_over.wait())
        await asyncio.wait((ended, stopped), return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            process.terminate()
            await ended
        stopped.cancel()
        if not is_over.is_set():
            print(f"{name} died with {process.returncode}; another one follows", flush=True)
            await asyncio.wait((asyncio.create_task(is_over.wait()),), timeout=AGAIN_S)


async def main(servers: str, workers: int) -> None:
    is_over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, is_over.set)
    async with asyncio.TaskGroup() as tasks:
        for number in range(1, workers + 1):
            tasks.create_task(keep(servers, f"w{number}", is_over))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--servers", default="127.0.0.1:9092", help="Kafka API of the node (default %(default)s)")
    arguments.add_argument("--workers", type=int, default=4, help="how many (default %(default)s)")
    given = arguments.parse_args()
    asyncio.run(main(given.servers, given.workers))

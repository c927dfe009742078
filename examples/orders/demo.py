"""The whole example: a broker of its own, orders in, enriched, to a second topic and to a lake, and a report.

make demo
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import enrich
import shop
import table

from goqueue.spark import session
from goqueue.spark.jobs import archive, dlq, reconcile, report

START_S_MAX = 60


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="orders in, enriched, to a second topic and to a lake, with a report")
    parser.add_argument("--orders", type=int, default=5000, help="how many (default 5000)")
    parser.add_argument("--directory", type=Path, help="where to leave all of it (default: a temporary directory)")
    given = parser.parse_args(arguments)
    directory = given.directory or Path(tempfile.mkdtemp(prefix="goqueue-demo-"))
    directory.mkdir(parents=True, exist_ok=True)
    broker, ready = start_broker(directory)
    try:
        return show(directory, ready["kafka"], f"http://{ready['http']}", given.orders)
    finally:
        broker.terminate()
        broker.wait()


def start_broker(directory: Path) -> tuple[subprocess.Popen, dict]:
    """On free ports, which it writes into a file when it is ready."""
    ready_file = directory / "ready.json"
    words = ["serve", "--dev", "--data-dir", str(directory / "data"), "--ready-file", str(ready_file)]
    for door in ("--kafka", "--http", "--grpc"):
        words += [door, "127.0.0.1:0"]
    say("a broker of its own", "goqueue serve --dev")
    with (directory / "broker.log").open("w") as log:
        broker = subprocess.Popen([Path(sys.executable).with_name("goqueue"), *words], stderr=log)
    give_up = time.monotonic() + START_S_MAX
    while not ready_file.exists():
        if broker.poll() is not None or time.monotonic() > give_up:
            sys.exit(f"the broker did not start: see {directory / 'broker.log'}")
        time.sleep(0.05)
    return broker, json.loads(ready_file.read_text())


def show(directory: Path, kafka: str, server: str, orders: int) -> int:
    asked = ["--kafka", kafka, "--server", server]
    lake, tables = str(directory / "lake"), str(directory / "tables")

    say(f"{orders:,} orders of 50 customers come in", "examples/orders/shop.py")
    asyncio.run(shop.open_shop(server))
    asyncio.run(shop.take_orders(kafka, orders))

    say("each order is enriched, to a second topic", "examples/orders/enrich.py")
    print(f"{enrich.enrich(session('orders'), kafka, str(directory / 'checkpoint')):,} orders")

    say("packers handle them: some twice, some never", "examples/orders/shop.py")
    print(asyncio.run(shop.pack(kafka, orders)))

    say("both topics go to a lake", f"goqueue pipeline archive orders enriched --lake {lake}")
    done = [archive.main(["orders", "enriched", "--lake", lake, *asked])]

    say("is everything there, once?", f"goqueue pipeline reconcile topic:orders,enriched lake:{lake}")
    done.append(reconcile.main(["topic:orders,enriched", f"lake:{lake}", *asked]))

    say("why did some fail?", "goqueue pipeline dlq enriched")
    done.append(dlq.main(["enriched", *asked]))

    say("how did it go?", "goqueue pipeline report orders enriched")
    done.append(report.main(["orders", "enriched", *asked]))

    say("orders as a table of Iceberg, with a new column on the way", f"goqueue pipeline serve --lake {tables}")
    done.append(table.keep(kafka, server, tables, orders))

    say("what does DuckDB find in it?", table.SQL)
    for row in table.ask(tables):
        print(*row, sep="\t")

    print(f"\nThe lake: {lake}, and the table: {tables}")
    return max(done)


def say(what: str, command: str) -> None:
    print(f"\n== {what}\n   {command}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

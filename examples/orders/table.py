"""The orders as a table of Iceberg, kept fresh by the service while the shop begins to note a city; read by DuckDB."""

import json
import os
import signal
import socket
import threading
import time
import urllib.request
from pathlib import Path

import duckdb
import shop

from goqueue.client.sync import Admin, Producer
from goqueue.spark.iceberg.catalogs import own_catalog
from goqueue.spark.jobs import serve

ORDER = {"id": {"type": "integer"}, "customer": {"type": "string"}, "amount": {"type": "number"}}
WAIT_S_MAX = 300
SQL = "SELECT city, count(*) AS orders, round(sum(amount), 2) AS amount FROM orders GROUP BY city ORDER BY city"


def keep(kafka: str, server: str, lake: str, orders: int) -> int:
    """Until the table has all orders, those with a city too."""
    with Admin(server) as admin:
        admin.register_schema("orders-value", schema(ORDER), kind="JSON")
        admin.set_options("orders", table="iceberg", table_schema="registry", table_freshness_ms=1000)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    changing = threading.Thread(target=change, args=(kafka, server, address, orders), daemon=True)
    changing.start()
    code = serve.main(["--lake", lake, "--listen", address, "--kafka", kafka, "--server", server])
    changing.join()
    return code


def change(kafka: str, server: str, address: str, orders: int) -> None:
    """A new version of the schema, and orders of it, while the service runs; then the service is told to stop."""
    try:
        wait_for_rows(address, orders)
        with Admin(server) as admin:
            admin.register_schema("orders-value", schema(ORDER | {"city": {"type": "string"}}), kind="JSON")
        more = [
            {"id": -1 - number, "customer": "c1", "amount": 10.0, "city": shop.CITIES[number % 4]}
            for number in range(100)
        ]
        with Producer(kafka) as producer:
            producer.send_many("orders", [shop.message(each["customer"], each) for each in more])
        wait_for_rows(address, orders + len(more))
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def wait_for_rows(address: str, rows: int) -> None:
    give_up_s = time.monotonic() + WAIT_S_MAX
    while time.monotonic() < give_up_s:
        time.sleep(0.5)
        try:
            with urllib.request.urlopen(f"http://{address}/status") as answer:
                tables = json.load(answer)["tables"]
        except OSError:
            continue  # it is starting
        if tables and tables[0]["rows"] >= rows:
            return
    raise TimeoutError("the table does not get what is in the topic")


def schema(fields: dict) -> str:
    said = {"type": "object", "title": "Order", "properties": fields, "additionalProperties": False}
    return json.dumps(said)


def ask(lake: str) -> list[tuple]:
    table = own_catalog(Path(lake)).load_table("goqueue.orders")
    with duckdb.connect() as database:
        database.register("orders", table.scan().to_arrow_batch_reader())
        return database.execute(SQL).fetchall()

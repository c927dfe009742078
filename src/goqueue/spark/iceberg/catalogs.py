"""Catalogs: the service's own, which is a file beside its tables, and those that PyIceberg is configured with."""

import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError

from goqueue.spark.errors import SparkError
from goqueue.spark.iceberg.projection import keep_nulls
from goqueue.spark.iceberg.settings import NAMESPACE

keep_nulls()

OWN = "goqueue"
"""What the service's own is called: readers of its file need the name."""


class Catalogs:
    """Opened once each, and used from every thread."""

    def __init__(self, lake: Path) -> None:
        self.lake = lake
        self._opened: dict[str, Catalog] = {}
        self._lock = threading.Lock()

    def open(self, name: str = "") -> Catalog:
        """SparkError: there is none of that name, or it does not answer."""
        with self._lock:
            if name not in self._opened:
                self._opened[name] = self._open(name)
            return self._opened[name]

    def _open(self, name: str) -> Catalog:
        try:
            catalog = load_catalog(name) if name else own_catalog(self.lake)
            with suppress(NamespaceAlreadyExistsError):
                catalog.create_namespace(NAMESPACE)
        except Exception as error:  # each catalog has errors of its own
            raise SparkError(f"catalog {name or OWN!r} cannot be used: {str(error) or type(error).__name__}") from error
        return catalog


def own_catalog(lake: Path) -> Catalog:
    """`catalog.db` in the directory, with the tables beside it. SparkError: addresses cannot have its name."""
    place = lake.resolve()
    if urlsplit(f"file://{place}").path != str(place) or unquote(str(place)) != str(place):
        raise SparkError(f"{place} cannot be a lake: #, ? and %20 mean something else in the addresses of its tables")
    lake.mkdir(parents=True, exist_ok=True)
    return load_catalog(OWN, type="sql", uri=f"sqlite:///{place}/catalog.db", warehouse=f"file://{place}")

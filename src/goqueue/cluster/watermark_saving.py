"""High watermarks on their way to the disk, every few seconds: what is lost of them only makes a start more careful."""

from goqueue.replica.replicas import Replicas
from goqueue.replica.saved_watermarks import SavedWatermarks
from goqueue.runtime.aside import Aside
from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.logs import get_logger

SAVE_MS = 5000

events = get_logger("replication")


class WatermarkSaving:
    """Made before copies are opened, which are judged by what was saved; `start` before the first of them serves."""

    def __init__(self, replicas: Replicas, saved: SavedWatermarks, clock: Clock, aside: Aside) -> None:
        self._replicas = replicas
        self._saved = replicas.saved = saved
        self._clock = clock
        self._aside = aside
        self._timer: Timer | None = None
        self._is_saving = False

    def start(self) -> None:
        """Durable when it returns: that the last stop was in good order says nothing of what is acknowledged now."""
        self._save_now(is_clean=False)
        self._timer = self._clock.call_after(SAVE_MS, self._save)

    def all_opened(self) -> None:
        """Or are known to have failed."""
        self._saved.begin()
        self.stop()
        self._save()

    def _save(self) -> None:
        self._timer = self._clock.call_after(SAVE_MS, self._save)
        if self._is_saving:
            return
        self._is_saving = True
        watermarks = self._saved.of(self._replicas.all(), is_clean=False)

        def done(error: BaseException | None) -> None:
            self._is_saving = False
            if error is not None:
                events.error("high watermarks not saved", reason=str(error))

        self._aside(lambda: self._saved.save(watermarks), done)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def leave_clean(self) -> None:
        """Nothing is written any more: everything is synced, and the next start need not doubt it."""
        self._replicas.sync()
        self._save_now(is_clean=True)

    def _save_now(self, *, is_clean: bool) -> None:
        try:
            self._saved.save(self._saved.of(self._replicas.all(), is_clean=is_clean))
        except OSError as error:
            events.error("high watermarks not saved", reason=str(error))

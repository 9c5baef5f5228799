"""When a replica's stores were found damaged: once is an accident, three times in an hour is a disk."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from lastword.core.durable import write_durably

FILE = "damages.json"
MOST = 3
WITHIN_MS = 3_600_000


class _Noted(msgspec.Struct, kw_only=True):
    # The moments of the last hour, in ms, oldest first.
    moments: list[int] = []
    # Why the present store is built again; None once it has been right since.
    healing: str | None = None


class Damages:
    """The damages of one replica's folder; survives the process, or a disk that goes bad would never be named."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._noted = _Noted()
        if self._file.exists():
            try:
                self._noted = msgspec.json.decode(self._file.read_bytes(), type=_Noted)
            except msgspec.MsgspecError:
                # Then the disk did it again.
                self._noted = _Noted(healing=f"{FILE} was damaged")

    @property
    def healing(self) -> str | None:
        """Why the store is built again, from the damage on until the new one has been right."""
        return self._noted.healing

    def note(self, why: str, now_ms: int) -> None:
        moments = [moment for moment in self._noted.moments if now_ms - moment < WITHIN_MS]
        self._noted = _Noted(moments=[*moments, now_ms], healing=why)
        self._write()

    def go_on_healing(self, why: str) -> None:
        """A store was set aside, and the process ended before it could note that."""
        if self._noted.healing is None:
            self._noted.healing = why
            self._write()

    def healed(self) -> None:
        self._noted.healing = None
        self._write()

    def pause_ms(self, now_ms: int) -> int:
        """How long to leave a disk alone that damaged too many stores; 0 when it may be tried."""
        if len(self._noted.moments) < MOST:
            return 0
        # A clock that was set back tells nothing.
        return min(WITHIN_MS, max(0, self._noted.moments[-MOST] + WITHIN_MS - now_ms))

    def _write(self) -> None:
        # On a full disk it is known to this process alone, which is better than not to go on.
        with suppress(OSError):
            write_durably(self._file, msgspec.json.encode(self._noted))

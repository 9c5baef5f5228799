"""When a replica's stores were found damaged: once is an accident, three times in an hour is a disk."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from lastword.core.durable import write_durably

FILE = "damages.json"
MOST_DAMAGES = 3
WITHIN_MS = 3_600_000


class _DamageNotes(msgspec.Struct, kw_only=True):
    # The moments of the last hour, in ms, oldest first.
    moments: list[int] = []
    # Why the present store is a replacement; None once it has caught up.
    healing: str | None = None


class DamageLog:
    """When stores of one folder were damaged; kept on disk, because a failing disk shows only over several starts."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._notes = _DamageNotes()
        if self._file.exists():
            try:
                self._notes = msgspec.json.decode(self._file.read_bytes(), type=_DamageNotes)
            except msgspec.MsgspecError:
                # The disk damaged this file, too.
                self._notes = _DamageNotes(healing=f"{FILE} was damaged")

    @property
    def healing(self) -> str | None:
        """Why the store is rebuilt, from the damage on until the new store has caught up."""
        return self._notes.healing

    def note(self, why: str, now_ms: int) -> None:
        moments = [moment for moment in self._notes.moments if now_ms - moment < WITHIN_MS]
        self._notes = _DamageNotes(moments=[*moments, now_ms], healing=why)
        self._write()

    def resume_healing(self, why: str) -> None:
        """A store was set aside, and the process ended before it could note that."""
        if self._notes.healing is None:
            self._notes.healing = why
            self._write()

    def healed(self) -> None:
        self._notes.healing = None
        self._write()

    def pause_ms(self, now_ms: int) -> int:
        """How long to leave a disk alone that damaged too many stores; 0 when it may be tried."""
        if len(self._notes.moments) < MOST_DAMAGES:
            return 0
        # A clock that was set back gives no answer.
        return min(WITHIN_MS, max(0, self._notes.moments[-MOST_DAMAGES] + WITHIN_MS - now_ms))

    def _write(self) -> None:
        # On a full disk only this process knows of it, which is better than to stop.
        with suppress(OSError):
            write_durably(self._file, msgspec.json.encode(self._notes))

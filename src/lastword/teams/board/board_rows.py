"""The rows of `board_state`: what the board has counted, each count with the position that it belongs to.

    actions/0, team_stats/3    the count of a source partition: next offset, topic id, and what all before it comes to
    refused                    the last refused records
    badges/NAME                the badges of a team, and when it earned them
    team/NAME                  an outside team that was registered; written by whoever registers it

The first three are written by one process at a time, in transactions: they are always those of one moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from lastword.core.errors import LastwordError
from lastword.core.record import Record
from lastword.teams.board.board_topics import ACTIONS, STATE, STATS
from lastword.teams.board.judging import is_team_name
from lastword.teams.board.tally import (
    BADGES_PREFIX,
    NOBODY,
    REFUSED_KEY,
    Count,
    Listed,
    Numbers,
    SourcePartition,
    Tally,
)

TEAM_PREFIX = "team/"
_FORMAT = 1
_DAMAGE = (msgspec.MsgspecError, ValueError, TypeError, KeyError, AttributeError)


class KeptBoard:
    """What `board_state` says, as far as it was read."""

    def __init__(self) -> None:
        self.counts: dict[SourcePartition, Count] = {}
        self.listed: list[Listed] = []
        self.earned: dict[str, dict[str, int]] = {}
        self.registered: dict[str, int] = {}
        self.written: int | None = None  # when a writer's row came last

    def take(self, record: Record) -> bool:
        """Folds a record of `board_state` in; whether it is a row that the board's writer keeps."""
        key = (record.key or b"").decode(errors="replace")
        if key.startswith(TEAM_PREFIX):
            self._take_team(key.removeprefix(TEAM_PREFIX), record.value)
            return False
        if record.value is None:
            return False
        try:
            is_ours = self._take_row(key, record.value)
        except _DAMAGE as damage:
            raise LastwordError(
                f"{STATE}, key {key[:60]!r}, offset {record.offset}: this is no row of a board ({damage}): "
                "delete that topic to count anew"
            ) from None
        if is_ours:
            self.written = record.timestamp
        return is_ours

    def tally(self) -> Tally:
        """A fold that goes on from here, with nothing changed yet."""
        made = Tally()
        made.counts = {place: count_copy(count) for place, count in self.counts.items()}
        made.listed.extend(self.listed)
        made.earned = {team: dict(earned) for team, earned in self.earned.items()}
        for count in made.counts.values():
            made.know({*count.actions, *count.numbers}, set(count.refused) - {NOBODY})
        made.know(made.earned, ())
        return made

    def _take_team(self, name: str, value: bytes | None) -> None:
        """A registered team; what is not one is passed over, because anybody may write such a row."""
        self.registered.pop(name, None)
        if value is None or not is_team_name(name):
            return
        try:
            registered = msgspec.json.decode(value)["registered"]
        except _DAMAGE:
            return
        if isinstance(registered, int):
            self.registered[name] = registered

    def _take_row(self, key: str, value: bytes) -> bool:
        topic, _, partition = key.rpartition("/")
        if key != REFUSED_KEY and not key.startswith(BADGES_PREFIX) and topic not in (ACTIONS, STATS):
            return False
        fields = msgspec.json.decode(value)
        if (found := fields.pop("format")) != _FORMAT:
            raise ValueError(f"it has format {found}, and this version knows {_FORMAT}")
        if key == REFUSED_KEY:
            self.listed = [Listed(**each) for each in fields["last"]]
        elif key.startswith(BADGES_PREFIX):
            self.earned[key.removeprefix(BADGES_PREFIX)] = dict(fields["earned"])
        else:
            numbers = {team: Numbers(**each) for team, each in fields.pop("numbers").items()}
            self.counts[SourcePartition(topic, int(partition))] = Count(**fields, numbers=numbers)
        return True


def count_copy(count: Count) -> Count:
    return Count(
        topic_id=count.topic_id,
        next_offset=count.next_offset,
        missed=count.missed,
        actions=dict(count.actions),
        numbers=dict(count.numbers),
        refused={team: dict(reasons) for team, reasons in count.refused.items()},
    )


def rows_of(tally: Tally, keys: Iterable[str]) -> dict[str, bytes]:
    """These rows of a tally, as they are written."""
    return {key: msgspec.json.encode({"format": _FORMAT, **_row(tally, key)}) for key in sorted(keys)}


def _row(tally: Tally, key: str) -> dict[str, Any]:
    if key == REFUSED_KEY:
        return {"last": [each._asdict() for each in tally.listed]}
    if key.startswith(BADGES_PREFIX):
        return {"earned": tally.earned[key.removeprefix(BADGES_PREFIX)]}
    topic, _, partition = key.rpartition("/")
    count = tally.counts[SourcePartition(topic, int(partition))]
    return {
        "topic_id": count.topic_id,
        "next_offset": count.next_offset,
        "missed": count.missed,
        "actions": count.actions,
        "numbers": {team: numbers._asdict() for team, numbers in count.numbers.items()},
        "refused": count.refused,
    }
